// Queries of a resource set, and changes of its ranks, properties and times. Selections are compared with a
// naive model.

#include "core/rset/resource_set.hpp"

#include <random>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model.hpp"

namespace resourced::rset {

using text::Hostlist;
using text::IdSet;

namespace {

using test::Model;

ResourceSet sample() {
  return ResourceSet::parse(
      R"({"version":1,"execution":{"R_lite":[{"rank":"0-3,8","children":{"core":"0-3"}},
          {"rank":"10-11","children":{"core":"0-1","gpu":"0"}}],
          "nodelist":["a[0-3]","b","c[1-2]"],"properties":{"fat":"0-1,10","+local":"8"},"nslots":7,
          "starttime":10,"expiration":20},"scheduling":{"s":1}})");
}

TEST_CASE("hosts and ranks find each other") {
  const ResourceSet set = sample();
  CHECK(set.ranks().encode() == "0-3,8,10-11");
  CHECK(set.nodelist().encode() == "a[0-3],b,c[1-2]");
  CHECK(set.host(0) == "a0");
  CHECK(set.host(8) == "b");
  CHECK(set.host(11) == "c2");
  CHECK_THROWS_WITH_AS(static_cast<void>(set.host(9)), "rank 9 is not in the resource set", Error);
  CHECK(set.rank_of("a3") == 3U);
  CHECK(set.rank_of("b") == 8U);
  CHECK(set.rank_of("c1") == 10U);
  CHECK(set.rank_of("c3") == std::nullopt);
  CHECK(set.hosts(IdSet::parse("3-9,11-99")).encode() == "a3,b,c2");
  CHECK(set.hosts(IdSet::parse("4-7")).empty());
  CHECK(set.position_of(8) == 4U);
  CHECK(set.position_of(4) == std::nullopt);
  CHECK(set.positions_of(IdSet::parse("0,2-10")).encode() == "0,2-5");
  CHECK_FALSE(set.hosts_repeat());
}

TEST_CASE("the rank of a host that several ranks share is the lowest") {
  const ResourceSet set({{IdSet::parse("3-5"), IdSet{0}, {}}}, Hostlist::parse("x,y,x"));
  CHECK(set.rank_of("x") == 3U);
  CHECK(set.hosts_repeat());
}

TEST_CASE("counts") {
  CHECK(sample().counts() == ResourceCounts{7, 24, 2});
  CHECK(sample().counts(IdSet::parse("3-10")) == ResourceCounts{3, 10, 1});
  CHECK(sample().counts(IdSet()) == ResourceCounts{});
  CHECK(ResourceSet().counts() == ResourceCounts{});
}

TEST_CASE("a copy of some ranks has nothing of the others") {
  const ResourceSet copy = sample().copy_ranks(IdSet::parse("1,8,99"));
  CHECK(copy.to_json() ==
        nlohmann::json::parse(
            R"({"version":1,"execution":{"R_lite":[{"rank":"1,8","children":{"core":"0-3"}}],
                "nodelist":["a1,b"],"properties":{"fat":"1","+local":"8"},"starttime":10.0,"expiration":20.0},
                "scheduling":{"s":1}})"));
  CHECK(sample().copy_ranks(sample().ranks()) == sample());
  CHECK(sample().copy_ranks(IdSet{99}).empty());
  CHECK(sample().copy_ranks(IdSet{99}).scheduling() != nullptr);
}

TEST_CASE("entries are ordered by first rank again when their first ranks are gone") {
  ResourceSet set = sample();
  set.remove_ranks(IdSet::parse("0-3"));
  REQUIRE(set.groups().size() == 2);
  CHECK(set.groups()[0].ranks == IdSet{8});
  set =
      ResourceSet({{IdSet::parse("0,9"), IdSet{0}, {}}, {IdSet{5}, IdSet{1}, {}}}, Hostlist::parse("a,b,c"));
  set.remove_ranks(IdSet{0});
  CHECK(set.groups()[0].ranks == IdSet{5});
  CHECK(set.groups()[1].ranks == IdSet{9});
}

TEST_CASE("a copy without instance-local properties has the others") {
  CHECK(sample().without_local_properties().properties() ==
        ResourceSet::Properties{{"fat", IdSet::parse("0-1,10")}});
}

TEST_CASE("properties come and go") {
  ResourceSet set = sample();
  set.add_property("fat", IdSet::parse("2,8"));
  set.add_property("new", IdSet{11});
  set.add_property("none", IdSet());
  set.remove_property("+local", IdSet::parse("8,10"));
  set.remove_property("unknown", IdSet{0});
  CHECK(set.properties() == ResourceSet::Properties{{"fat", IdSet::parse("0-2,8,10")}, {"new", IdSet{11}}});
  CHECK_THROWS_WITH_AS(set.add_property("fat", IdSet{9}), "property fat: rank 9 is not in the resource set",
                       Error);
  CHECK_THROWS_AS(set.remove_property("fat", IdSet{9}), Error);
  CHECK_THROWS_WITH_AS(set.add_property("a|b", IdSet{0}), "property \"a|b\": a property name cannot have |",
                       Error);
  CHECK_THROWS_AS(set.add_property("", IdSet{0}), Error);
  CHECK(set.properties().size() == 2);
}

TEST_CASE("times keep their order") {
  ResourceSet set = sample();
  set.set_expiration(wall_time(10.5));
  CHECK(set.expiration() == wall_time(10.5));
  CHECK_THROWS_AS(set.set_expiration(wall_time(10)), Error);
  CHECK_THROWS_AS(set.set_expiration(wall_time(-1)), Error);
  CHECK_THROWS_AS(set.set_expiration(wall_time(std::numeric_limits<double>::quiet_NaN())), Error);
  CHECK_THROWS_AS(set.set_starttime(wall_time(10.5)), Error);
  CHECK(set.expiration() == wall_time(10.5));
  set.set_expiration(wall_time(0));
  set.set_starttime(wall_time(1e9));
  CHECK(set.starttime() == wall_time(1e9));
}

TEST_CASE("scheduling is an object") {
  ResourceSet set = sample();
  set.set_scheduling(" { \"x\" : 1e1, \"graph\": [1,\n2]} ");
  CHECK(*set.scheduling() == R"({"x":1e1,"graph":[1,2]})");
  CHECK(ResourceSet::parse(set.encode()) == set);
  const auto refusal = [&](std::string_view text) {
    try {
      set.set_scheduling(text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK(refusal("[]") == "is not an object");
  CHECK(refusal(R"({"writer":1})") == "writer: is not a string");
  CHECK(refusal(R"({"x":[1,]})") == "is not JSON (at byte 9)");
  CHECK(refusal("{} 1") == "is not JSON (at byte 4)");
  CHECK(ResourceSet().scheduling() == nullptr);
}

TEST_CASE("groups that are no resource set are refused") {
  const auto make = [](std::vector<ResourceGroup> groups, const char* hosts) {
    return ResourceSet(std::move(groups), Hostlist::parse(hosts));
  };
  CHECK_THROWS_WITH_AS(make({{IdSet{0}, {}, {}}}, "a"), "rank 0 has neither cores nor gpus", Error);
  CHECK_THROWS_WITH_AS(make({{{}, IdSet{0}, {}}}, ""), "a group has no ranks", Error);
  CHECK_THROWS_WITH_AS(make({{IdSet{0}, IdSet{0}, {}}}, "a,b"), "2 hosts for 1 ranks", Error);
  CHECK_THROWS_WITH_AS(make({{IdSet{0}, IdSet{0}, {}}, {IdSet{0}, IdSet{0}, {}}}, "a"),
                       "rank 0 has core 0 twice", Error);
  CHECK(make({}, "") == ResourceSet());
}

TEST_CASE("equality is about content") {
  const ResourceSet set = sample();
  ResourceSet other = set;
  CHECK(other == set);
  other.add_property("x", IdSet{0});
  CHECK_FALSE(other == set);
  CHECK(same_resources(other, set));
  other = set;
  other.set_expiration(wall_time(0));
  CHECK_FALSE(other == set);
  other = set;
  other.set_scheduling(R"({"s":2})");
  CHECK_FALSE(other == set);
  CHECK_FALSE(same_resources(set.copy_ranks(IdSet{0}), set));
}

TEST_CASE("selections agree with a naive model") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const Model model = test::random_model(random);
    const ResourceSet set = test::set_of(model, random);
    REQUIRE(test::model_of(set) == model);
    REQUIRE(ResourceSet::parse(set.encode()) == set);
    REQUIRE(ResourceSet::from_json(set.to_json()) == set);
    test::check_carried(set);

    Model chosen;
    ResourceCounts counts;
    for (const auto& [rank, node] : model) {
      CHECK(set.rank_of(node.host) == rank);
      if (!test::flip(random)) continue;
      chosen.emplace(rank, node);
      ++counts.nodes;
      counts.cores += node.cores.size();
      counts.gpus += node.gpus.size();
    }
    const IdSet ranks = test::id_set(test::ranks_of(chosen));
    const ResourceSet copy = set.copy_ranks(ranks);
    CHECK(test::model_of(copy) == chosen);
    CHECK(copy.counts() == counts);
    CHECK(set.counts(ranks) == counts);
    CHECK(set.hosts(ranks) == copy.nodelist());
    CHECK(set.has_hosts(ranks, copy.nodelist()));
    text::Hostlist others = copy.nodelist();
    others.append("x");
    CHECK_FALSE(set.has_hosts(ranks, others));
    const IdSet fewer = ranks.empty() ? ranks : ranks - IdSet{ranks.last()};
    CHECK(set.has_hosts(fewer, copy.nodelist()) == ranks.empty());
    CHECK(ResourceSet::parse(copy.encode()) == copy);
    test::check_carried(copy);

    ResourceSet rest = set;
    rest.remove_ranks(set.ranks() - ranks);
    CHECK(rest == copy);
    std::size_t position = 0;
    copy.ranks().for_each([&](IdSet::Id rank) { CHECK(copy.position_of(rank) == position++); });
  }
}

}  // namespace
}  // namespace resourced::rset

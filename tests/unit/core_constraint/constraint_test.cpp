// Constraints of RFC 31: matches, errors, and a comparison with a naive evaluation rank by rank.
#include "core/constraint/constraint.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/rset/operations.hpp"

namespace resourced::constraint {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

using Json = nlohmann::json;

/// Eight nodes with a property for each of the cases below.
ResourceSet inventory() {
  ResourceSet set({{IdSet::parse("0-7"), IdSet::parse("0-3"), IdSet{}}}, Hostlist::parse("node[0-7]"));
  set.add_property("gpu", IdSet::parse("2-5"));
  set.add_property("ssd", IdSet::parse("0-3"));
  set.add_property("+local", IdSet::parse("7"));
  set.add_property("amd@2", IdSet::parse("6"));
  return set;
}

struct MatchCase {
  std::string constraint;
  std::string ranks;
};

TEST_CASE("the ranks that match") {
  const ResourceSet set = inventory();
  const std::vector<MatchCase> cases{
      {R"({})", "0-7"},
      {R"({"and": []})", "0-7"},
      {R"({"or": []})", "0-7"},
      {R"({"not": []})", ""},
      {R"({"not": [{}]})", ""},
      {R"({"and": [{}, {"or": []}]})", "0-7"},
      {R"({"or": [{"not": []}]})", ""},
      {R"({"properties": []})", "0-7"},
      {R"({"properties": ["gpu"]})", "2-5"},
      {R"({"properties": ["gpu", "ssd"]})", "2-3"},
      {R"({"properties": ["^gpu"]})", "0-1,6-7"},
      {R"({"properties": ["ssd", "^gpu"]})", "0-1"},
      {R"({"properties": ["nothing-has-it"]})", ""},
      {R"({"properties": ["^nothing-has-it"]})", "0-7"},
      {R"({"properties": ["+local"]})", "7"},
      {R"({"properties": ["local"]})", ""},
      {R"({"properties": ["amd@2"]})", "6"},
      {R"({"properties": ["amd"]})", ""},
      {R"({"properties": ["^amd@2"]})", "0-5,7"},
      {R"({"hostlist": ["node[1-3]"]})", "1-3"},
      {R"({"hostlist": ["node1", "node[6-9],other"]})", "1,6-7"},
      {R"({"hostlist": ["node3,node3"]})", "3"},
      {R"({"hostlist": []})", ""},
      {R"({"hostlist": [""]})", ""},
      {R"({"ranks": ["0-1", "[7-20]"]})", "0-1,7"},
      {R"({"ranks": []})", ""},
      {R"({"ranks": ["0-4294967294"]})", "0-7"},
      {R"({"or": [{"properties": ["gpu"]}, {"ranks": ["0"]}]})", "0,2-5"},
      {R"({"and": [{"properties": ["gpu"]}, {"hostlist": ["node[5-7]"]}]})", "5"},
      {R"({"not": [{"properties": ["gpu", "ssd"]}]})", "0-1,4-7"},
      // not negates the conjunction of its values.
      {R"({"not": [{"properties": ["gpu"]}, {"properties": ["ssd"]}]})", "0-1,4-7"},
      {R"({"not": [{"not": [{"ranks": ["4"]}]}]})", "4"},
      // Several keys of one object are a conjunction.
      {R"({"properties": ["gpu"], "ranks": ["0-3"], "not": [{"hostlist": ["node2"]}]})", "3"},
  };
  for (const MatchCase& match : cases) {
    CAPTURE(match.constraint);
    CHECK(Constraint::from_json(Json::parse(match.constraint)).match(set).encode() == match.ranks);
  }
  CHECK(Constraint().match(set).encode() == "0-7");
}

TEST_CASE("a host that several ranks share matches all of them") {
  const ResourceSet set({{IdSet::parse("0-3"), IdSet::parse("0"), IdSet{}}}, Hostlist::parse("a,b,a,b"));
  CHECK(Constraint::from_json(Json::parse(R"({"hostlist": ["b"]})")).match(set).encode() == "1,3");
}

TEST_CASE("nothing matches in an empty inventory") {
  for (const char* text : {"{}", R"({"not": []})", R"({"ranks": ["0"]})", R"({"properties": ["^a"]})"}) {
    CAPTURE(text);
    CHECK(Constraint::from_json(Json::parse(text)).match(ResourceSet()).empty());
  }
}

TEST_CASE("a constraint is written as it was read") {
  for (const char* text :
       {"{}", R"({"and":[]})", R"({"properties":["^a","b@x"],"ranks":["0-3","5"]})",
        R"({"not":[{"or":[{"hostlist":["n[1-2]","n3"]},{"and":[{},{"properties":[]}]}]}]})"}) {
    CHECK(Constraint::from_json(Json::parse(text)).to_json().dump() == text);
  }
}

struct RefusedConstraint {
  std::string constraint;
  std::string text;
};

TEST_CASE("errors name operator and place") {
  const std::vector<RefusedConstraint> cases{
      {R"([])", "constraint: must be an object"},
      {R"("gpu")", "constraint: must be an object"},
      {R"(null)", "constraint: must be an object"},
      {R"({"foo": []})", "constraint: unknown operator \"foo\""},
      {R"({"": []})", "constraint: unknown operator \"\""},
      {R"({"and": {}})", "and: must be an array"},
      {R"({"properties": "gpu"})", "properties: must be an array"},
      {R"({"and": ["gpu"]})", "and[0]: must be an object"},
      {R"({"and": [{}, {"properties": [7]}]})", "and[1].properties[0]: must be a string"},
      {R"({"or": [{"not": [{"bar": []}]}]})", "or[0].not[0]: unknown operator \"bar\""},
      {R"({"ranks": [0]})", "ranks[0]: must be a string"},
      {R"({"properties": ["a", "b!c"]})", "properties[1]: \"b!c\": a property name cannot have !"},
      {R"({"properties": ["a^b"]})", "properties[0]: \"a^b\": a property name cannot have ^"},
      {R"({"properties": ["^"]})", "properties[0]: \"^\": a property name is empty"},
      {R"({"properties": [""]})", "properties[0]: \"\": a property name is empty"},
  };
  for (const RefusedConstraint& error : cases) {
    CAPTURE(error.constraint);
    CHECK_THROWS_WITH_AS(static_cast<void>(Constraint::from_json(Json::parse(error.constraint))),
                         error.text.c_str(), Error);
  }
}

TEST_CASE("a bad idset or hostlist is an error with the place and what is wrong with it") {
  const auto error_of = [](const char* text) -> std::string {
    try {
      static_cast<void>(Constraint::from_json(Json::parse(text)));
    } catch (const Error& error) {
      CHECK(error.errnum() == EINVAL);
      return error.what();
    }
    return "";
  };
  CHECK(error_of(R"({"not": [{"ranks": ["0", "3-1"]}]})").starts_with("not[0].ranks[1]: \"3-1\""));
  CHECK(error_of(R"({"hostlist": ["n[3-1]"]})").starts_with("hostlist[0]: \"n[3-1]\""));
}

TEST_CASE("size and depth are limited") {
  const auto errnum_of = [](const Json& document) {
    try {
      static_cast<void>(Constraint::from_json(document));
    } catch (const Error& error) {
      return error.errnum();
    }
    return 0;
  };
  Json deep = Json::object();
  for (std::size_t depth = 1; depth < Constraint::max_depth; ++depth)
    deep = Json{{"not", Json::array({deep})}};
  CHECK(errnum_of(deep) == 0);
  CHECK(errnum_of(Json{{"not", Json::array({deep})}}) == ERANGE);

  Json names = Json::array();
  for (std::size_t i = 0; i < Constraint::max_terms - 2; ++i) names.push_back("a");
  CHECK(errnum_of(Json{{"properties", names}}) == 0);
  names.push_back("a");
  CHECK(errnum_of(Json{{"properties", names}}) == ERANGE);

  Json hosts = Json::array({"a[1-1048575]"});
  CHECK(errnum_of(Json{{"hostlist", hosts}}) == 0);
  hosts.push_back("b[1-2]");
  CHECK(errnum_of(Json{{"hostlist", hosts}}) == ERANGE);
}

class RandomConstraints {
 public:
  explicit RandomConstraints(unsigned seed) : engine_(seed) {}
  unsigned below(unsigned limit) { return std::uniform_int_distribution<unsigned>(0, limit - 1)(engine_); }

 private:
  std::mt19937 engine_;
};

const std::vector<std::string> property_names{"a", "b", "c"};

Json random_constraint(RandomConstraints& random, int depth) {
  Json object = Json::object();
  for (unsigned keys = random.below(3); keys > 0; --keys) {
    Json values = Json::array();
    const unsigned choice = random.below(depth > 0 ? 6 : 3);
    for (unsigned n = random.below(3); n > 0; --n) {
      if (choice == 0)
        values.push_back((random.below(2) == 0 ? "^" : "") + property_names[random.below(3)]);
      else if (choice == 1)
        values.push_back(fmt::format("h[{}-{}]", random.below(6), 6 + random.below(6)));
      else if (choice == 2)
        values.push_back(fmt::format("{},{}-20", random.below(4), 4 + random.below(10)));
      else
        values.push_back(random_constraint(random, depth - 1));
    }
    static constexpr std::array names{"properties", "hostlist", "ranks", "and", "or", "not"};
    object[names[choice]] = values;
  }
  return object;
}

/// Whether one rank satisfies a constraint, implemented directly from the text of RFC 31.
bool satisfies(const Json& object, const ResourceSet& set, IdSet::Id rank) {
  const auto each = [&](const Json& value) { return satisfies(value, set, rank); };
  const auto holds = [&](const std::string& op, const Json& values) {
    if (op == "and") return std::ranges::all_of(values, each);
    if (op == "or") return values.empty() || std::ranges::any_of(values, each);
    if (op == "not") return !std::ranges::all_of(values, each);
    return op == "properties"
               ? std::ranges::all_of(
                     values,
                     [&](const std::string& name) {
                       const bool wanted = name[0] != '^';
                       const auto found = set.properties().find(wanted ? name : name.substr(1));
                       return (found != set.properties().end() && found->second.contains(rank)) == wanted;
                     })
           : op == "ranks"
               ? std::ranges::any_of(values,
                                     [&](const std::string& ids) { return IdSet::parse(ids).contains(rank); })
               : std::ranges::any_of(values, [&](const std::string& hosts) {
                   return Hostlist::parse(hosts).find(set.host(rank)).has_value();
                 });
  };
  return std::ranges::all_of(object.items(),
                             [&](const auto& item) { return holds(item.key(), item.value()); });
}

TEST_CASE("a copy by constraint has what matches and nothing of the rest") {
  ResourceSet set = inventory();
  set.set_scheduling(R"({"graph":"opaque"})");
  const auto copy = [&](const char* text) {
    return set.copy_ranks(Constraint::from_json(Json::parse(text)).match(set));
  };
  const ResourceSet gpu = copy(R"({"properties": ["gpu"]})");
  CHECK(gpu.ranks().encode() == "2-5");
  CHECK(gpu.nodelist().encode() == "node[2-5]");
  CHECK(gpu.properties() ==
        ResourceSet::Properties{{"gpu", IdSet::parse("2-5")}, {"ssd", IdSet::parse("2-3")}});
  CHECK(*gpu.scheduling() == *set.scheduling());
  CHECK(append(gpu, copy(R"({"not": [{"properties": ["gpu"]}]})")) == set);
  CHECK(copy(R"({"not": []})").empty());
  CHECK(copy("{}") == set);
}

TEST_CASE("matching agrees with a look at each rank by itself") {
  constexpr unsigned seed = 20;
  INFO("seed ", seed);
  RandomConstraints random(seed);
  for (int i = 0; i < 2000; ++i) {
    ResourceSet set({{IdSet::parse("1-4,8-12"), IdSet::parse("0"), IdSet{}}}, Hostlist::parse("h[1-9]"));
    for (const std::string& name : property_names) {
      IdSet ranks;
      set.ranks().for_each([&](IdSet::Id rank) {
        if (random.below(2) == 0) ranks.insert(rank);
      });
      set.add_property(name, ranks);
    }
    const Json document = random_constraint(random, 3);
    IdSet expected;
    set.ranks().for_each([&](IdSet::Id rank) {
      if (satisfies(document, set, rank)) expected.insert(rank);
    });
    INFO(document.dump());
    REQUIRE(Constraint::from_json(document).match(set).encode() == expected.encode());
  }
}

}  // namespace
}  // namespace resourced::constraint

// The algebra of resource sets: examples, and laws that hold for random sets.

#include "core/rset/operations.hpp"

#include <algorithm>
#include <random>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/rset/short_form.hpp"
#include "model.hpp"
#include "nodes.hpp"

namespace resourced::rset {

using text::Hostlist;
using text::IdSet;

namespace {

using test::Ids;
using test::Model;
using test::Node;
using test::nodes;

/// Splits a model into two parts: each core and gpu is in one of them. A rank without cores is in neither, as
/// an R has no gpus without cores.
std::pair<Model, Model> split(const Model& model, std::mt19937& random) {
  std::pair<Model, Model> parts;
  const auto rest = [](const Ids& all, const Ids& taken) {
    Ids left;
    std::set_difference(all.begin(), all.end(), taken.begin(), taken.end(), std::inserter(left, left.end()));
    return left;
  };
  for (const auto& [rank, node] : model) {
    Node a = node;
    if (random() % 3 != 0) a.cores = test::some_of(node.cores, random);
    if (random() % 3 != 0) a.gpus = test::some_of(node.gpus, random);
    if (a.cores.empty()) a.gpus.clear();
    if (a.cores == node.cores) a.gpus = node.gpus;
    Node b = node;
    b.cores = rest(node.cores, a.cores);
    b.gpus = rest(node.gpus, a.gpus);
    if (!a.cores.empty()) parts.first.emplace(rank, a);
    if (!b.cores.empty()) parts.second.emplace(rank, b);
  }
  return parts;
}

TEST_CASE("append adds up ranks, and resources of a rank") {
  CHECK(short_form(append(nodes("0", "0-3", "", "a"), nodes("1-2", "0-3", "", "b,c"))) ==
        "rank[0-2]/core[0-3]");
  CHECK(short_form(append(nodes("1", "0-3", "", "b"), nodes("0,2", "0", "0", "a,c"))) ==
        "rank[0,2]/core0,gpu0 rank1/core[0-3]");
  CHECK(append(nodes("1,3", "0", "", "b,d"), nodes("0,2,4-5", "0", "", "a,c,e,f")).nodelist().encode() ==
        "a,b,c,d,e,f");
  CHECK(short_form(append(nodes("0-1", "0-1", "", "a,b"), nodes("0", "2", "0", "a"))) ==
        "rank0/core[0-2],gpu0 rank1/core[0-1]");
}

TEST_CASE("append refuses what is in both, and a rank on two hosts") {
  CHECK_THROWS_WITH_AS(static_cast<void>(append(nodes("0-1", "0-3", "", "a,b"), nodes("1", "2-5", "", "b"))),
                       "rank 1 has core 2-3 twice", Error);
  CHECK_THROWS_WITH_AS(static_cast<void>(append(nodes("0", "0", "0", "a"), nodes("0", "1", "0", "a"))),
                       "rank 0 has gpu 0 twice", Error);
  CHECK_THROWS_WITH_AS(static_cast<void>(append(nodes("0", "0", "", "a"), nodes("0", "1", "", "b"))),
                       "rank 0 is host a in one set and b in another", Error);
}

TEST_CASE("diff and intersect go down to cores and gpus") {
  const ResourceSet all = nodes("0-3", "0-3", "0-1", "n[0-3]");
  CHECK(short_form(diff(all, nodes("1-2", "0-3", "0-1", "n[1-2]"))) == "rank[0,3]/core[0-3],gpu[0-1]");
  CHECK(short_form(diff(all, nodes("0", "0-1", "1", "n0"))) ==
        "rank0/core[2-3],gpu0 rank[1-3]/core[0-3],gpu[0-1]");
  CHECK(diff(all, all).empty());
  CHECK(short_form(diff(all, nodes("0-3", "0-3", "", "n[0-3]"))) == "rank[0-3]/gpu[0-1]");
  CHECK(short_form(intersect(all, nodes("2-9", "3-5", "", "n[2-9]"))) == "rank[2-3]/core3");
  CHECK(intersect(all, nodes("7", "0", "", "n7")).empty());
  CHECK_THROWS_AS(static_cast<void>(diff(all, nodes("0", "0", "", "x"))), Error);
  CHECK_THROWS_AS(static_cast<void>(intersect(all, nodes("0", "0", "", "x"))), Error);
}

TEST_CASE("what the first operand does not have is taken from the second, and never lost") {
  ResourceSet a = nodes("0", "0", "", "a");
  ResourceSet b = nodes("1", "0", "", "b");
  b.set_scheduling(R"({"graph":"b"})");
  CHECK(*append(a, b).scheduling() == R"({"graph":"b"})");
  a.set_scheduling(R"({"graph":"a"})");
  CHECK(*append(a, b).scheduling() == R"({"graph":"a"})");
}

TEST_CASE("include and exclude take ranks or hosts") {
  const ResourceSet set = nodes("0-3", "0", "", "n[0-3]");
  CHECK(include(set, "1-2").ranks().encode() == "1-2");
  CHECK(include(set, "n[0,3]").ranks().encode() == "0,3");
  CHECK(exclude(set, "1-2").ranks().encode() == "0,3");
  CHECK(exclude(set, "n0").ranks().encode() == "1-3");
  CHECK_THROWS_AS(static_cast<void>(include(set, "4")), Error);
}

TEST_CASE("properties that one set has and another lacks") {
  ResourceSet before = nodes("0-3", "0", "", "n[0-3]");
  ResourceSet set = before;
  before.add_property("p", IdSet::parse("0-1"));
  before.add_property("gone", IdSet::parse("3"));
  set.add_property("p", IdSet::parse("1-2"));
  set.add_property("fresh", IdSet::parse("0"));
  CHECK(new_properties(set, before) ==
        ResourceSet::Properties{{"p", IdSet::parse("2")}, {"fresh", IdSet::parse("0")}});
  CHECK(new_properties(before, set) ==
        ResourceSet::Properties{{"p", IdSet::parse("0")}, {"gone", IdSet::parse("3")}});
  CHECK(new_properties(set, set).empty());
}

TEST_CASE("ranks are chosen by properties") {
  ResourceSet set = nodes("0-3", "0", "", "n[0-3]");
  set.add_property("p", IdSet::parse("0-2"));
  set.add_property("q", IdSet::parse("2-3"));
  CHECK(ranks_with_properties(set, "p").encode() == "0-2");
  CHECK(ranks_with_properties(set, "p,q").encode() == "2");
  CHECK(ranks_with_properties(set, "p,^q").encode() == "0-1");
  CHECK(ranks_with_properties(set, "^p").encode() == "3");
  CHECK(ranks_with_properties(set, "x").empty());
  CHECK(ranks_with_properties(set, "^x").encode() == "0-3");
  for (const char* text : {"", "p,", "^", ",p"})
    CHECK_THROWS_AS(static_cast<void>(ranks_with_properties(set, text)), Error);
}

TEST_CASE("set-property adds to all ranks or to those that are named") {
  ResourceSet set = nodes("0-3", "0", "", "n[0-3]");
  set_property(set, "p");
  set_property(set, "q:1-2");
  set_property(set, "a:b:3");
  CHECK(set.properties() ==
        ResourceSet::Properties{{"p", IdSet::parse("0-3")}, {"q", IdSet::parse("1-2")}, {"a:b", IdSet{3}}});
  for (const char* text : {"", "p:", "p:x", "p:4", ":0", "a!", "a!:0"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(set_property(set, text), Error);
  }
}

TEST_CASE("remap numbers ranks from 0 in their order") {
  ResourceSet set = ResourceSet({{IdSet::parse("3,9"), IdSet{0}, {}}, {IdSet::parse("5-6"), IdSet{1}, {}}},
                                Hostlist::parse("a,b,c,d"));
  set.add_property("p", IdSet::parse("5,9"));
  set.set_nslots(4);
  const ResourceSet mapped = remap(set);
  CHECK(short_form(mapped) == "rank[0,3]/core0 rank[1-2]/core1");
  CHECK(mapped.nodelist() == set.nodelist());
  CHECK(mapped.properties() == ResourceSet::Properties{{"p", IdSet::parse("1,3")}});
  CHECK(mapped.nslots() == 4);
  CHECK(remap(ResourceSet()).empty());
}

TEST_CASE("renumber_cores numbers the cores of each rank from 0") {
  const ResourceSet set = ResourceSet({{IdSet::parse("3,9"), IdSet::parse("1,7-8"), IdSet{5}},
                                       {IdSet::parse("5-6"), IdSet::parse("2-4"), IdSet{5}},
                                       {IdSet::parse("7"), IdSet(), IdSet{1}}},
                                      Hostlist::parse("a,b,c,d,e"));
  const ResourceSet numbered = renumber_cores(set);
  CHECK(short_form(numbered) == "rank[3,5-6,9]/core[0-2],gpu5 rank7/gpu1");
  CHECK(numbered.nodelist() == set.nodelist());
  CHECK(renumber_cores(ResourceSet()).empty());
}

TEST_CASE("rerank follows the order of the hosts") {
  ResourceSet set =
      ResourceSet({{IdSet::parse("0-1"), IdSet{0}, {}}, {IdSet{2}, IdSet{1}, {}}}, Hostlist::parse("a,b,c"));
  set.add_property("p", IdSet{0});
  const ResourceSet other = rerank(set, Hostlist::parse("c,b,a"));
  CHECK(short_form(other) == "rank0/core1 rank[1-2]/core0");
  CHECK(other.nodelist().encode() == "c,b,a");
  CHECK(other.properties() == ResourceSet::Properties{{"p", IdSet{2}}});
  CHECK_THROWS_WITH_AS(static_cast<void>(rerank(set, Hostlist::parse("a,b,x"))), "unknown host: x", Error);
  CHECK_THROWS_WITH_AS(static_cast<void>(rerank(set, Hostlist::parse("c,a"))), "host b is missing", Error);
  CHECK_THROWS_WITH_AS(static_cast<void>(rerank(set, Hostlist::parse("a,b,a,c"))),
                       "host a is given too often", Error);
}

TEST_CASE("ranks that share a host keep their order in rerank") {
  const ResourceSet set({{IdSet{0}, IdSet{0}, {}}, {IdSet{1}, IdSet{1}, {}}, {IdSet{2}, IdSet{2}, {}}},
                        Hostlist::parse("a,b,a"));
  CHECK(short_form(rerank(set, Hostlist::parse("a,a,b"))) == "rank0/core0 rank1/core2 rank2/core1");
}

TEST_CASE("laws of the algebra") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const Model model = test::random_model(random);
    const auto [left, right] = split(model, random);
    const ResourceSet whole = test::set_of(model, random);
    const ResourceSet a = test::set_of(left, random);
    const ResourceSet b = test::set_of(right, random);

    CHECK(append(a, b) == whole);
    CHECK(append(b, a) == whole);
    CHECK(diff(whole, b) == a);
    CHECK(diff(whole, a) == b);
    CHECK(intersect(a, b).empty());
    CHECK(intersect(whole, a) == a);
    CHECK(intersect(a, whole) == a);
    CHECK(diff(a, whole).empty());
    CHECK(append(whole, ResourceSet()) == whole);
    CHECK(append(ResourceSet(), whole) == whole);

    // The parts of another split, which overlap with these.
    const auto [c_model, d_model] = split(model, random);
    const ResourceSet c = test::set_of(c_model, random);
    CHECK(intersect(a, c) == intersect(c, a));
    CHECK(append(intersect(a, c), diff(a, c)) == a);
    if (!intersect(a, c).empty()) CHECK_THROWS_AS(static_cast<void>(append(a, c)), Error);
    for (const ResourceSet& set : {append(a, b), diff(whole, b), intersect(a, whole), diff(a, whole)})
      test::check_carried(set);
  }
}

TEST_CASE("laws of renumbering") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const Model model = test::random_model(random);
    const ResourceSet set = test::set_of(model, random);
    const ResourceSet mapped = remap(set);
    CHECK(mapped.counts() == set.counts());
    CHECK(mapped.ranks() == IdSet::range(0, static_cast<IdSet::Id>(model.size() - 1)));
    CHECK(remap(mapped) == mapped);
    const Model numbered = test::model_of(mapped);
    CHECK(std::equal(numbered.begin(), numbered.end(), model.begin(), model.end(),
                     [](const auto& x, const auto& y) { return x.second == y.second; }));

    std::vector<std::string> names;
    for (const auto& [rank, node] : model) names.push_back(node.host);
    std::shuffle(names.begin(), names.end(), random);
    Hostlist hosts;
    for (const std::string& name : names) hosts.append(name);
    const ResourceSet reranked = rerank(set, hosts);
    for (const auto& [rank, node] : test::model_of(reranked)) {
      const auto before = std::find_if(model.begin(), model.end(), [&host = node.host](const auto& entry) {
        return entry.second.host == host;
      });
      CHECK(node == before->second);
      CHECK(node.host == names[rank]);
    }
    CHECK(rerank(reranked, set.nodelist()) == mapped);
    test::check_carried(reranked);
    test::check_carried(mapped);
  }
}

}  // namespace
}  // namespace resourced::rset

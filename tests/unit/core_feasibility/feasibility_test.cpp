// Feasibility case by case, and compared with a naive search that places the cores and gpus of each slot.
#include "core/feasibility/feasibility.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/constraint/query.hpp"
#include "core/error.hpp"
#include "core/jobspec/resource_list.hpp"
#include "core/jobspec/shape.hpp"

namespace resourced::feasibility {

using constraint::Constraint;
using constraint::parse_query;
using jobspec::parse_shape;
using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

using Json = nlohmann::json;
using Verdict = Feasibility::Verdict;

rset::ResourceGroup group(const char* ranks, const char* cores, const char* gpus) {
  return {IdSet::parse(ranks), IdSet::parse(cores), IdSet::parse(gpus)};
}

/// Ten nodes of 8 cores.
ResourceSet ten_equal() { return ResourceSet({group("0-9", "0-7", "")}, Hostlist::parse("n[0-9]")); }

/// Eight nodes of 4 cores and 2 gpus (property gpu), four nodes of 16 cores (property big).
ResourceSet mixed() {
  ResourceSet set({group("0-7", "0-3", "0-1"), group("8-11", "0-15", "")}, Hostlist::parse("n[0-11]"));
  set.add_property("gpu", IdSet::parse("0-7"));
  set.add_property("big", IdSet::parse("8-11"));
  return set;
}

struct ShapeCase {
  std::string shape;
  /// The reason of the refusal; empty where the shape is feasible.
  std::string reason;
};

void check_shapes(const ResourceSet& inventory, const std::vector<ShapeCase>& cases,
                  const Constraint& constraint = {}) {
  for (const ShapeCase& shape : cases) {
    CAPTURE(shape.shape);
    const Feasibility answer = check_feasibility(parse_shape(shape.shape), constraint, inventory);
    CHECK(answer.reason == shape.reason);
    CHECK(answer.feasible() == shape.reason.empty());
  }
}

TEST_CASE("equal nodes") {
  check_shapes(
      ten_equal(),
      {
          {"node=10", ""},
          {"node=11", "needs 11 nodes, the inventory has 10"},
          {"slot=10/node", ""},
          {"slot=11/node", "needs 11 nodes, the inventory has 10"},
          {"slot=5/node=2", ""},
          {"slot=4/node=3", "needs 12 nodes, the inventory has 10"},
          // A slot is placed within one node.
          {"slot=10/core=5", ""},
          {"slot=20/core=5", "needs 20 slots with 5 cores in one node each, the inventory has room for 10"},
          {"slot=20/core=4", ""},
          {"slot/core=9", "needs 1 slot with 9 cores in one node, the inventory has room for 0"},
          {"slot=2/[core=4;gpu]",
           "needs 2 slots with 4 cores and 1 gpu in one node each, the inventory has room for 0"},
          // With a node vertex, each node holds its slots.
          {"node=10/slot=2/core=4", ""},
          {"node=10/slot=2/core=5", "needs 10 nodes with 10 cores, the inventory has 0"},
          {"node=5/slot=8/core", ""},
          {"node=5/slot=9/core", "needs 5 nodes with 9 cores, the inventory has 0"},
          {"node=2/slot/gpu", "needs 2 nodes with 1 gpu, the inventory has 0"},
          {"core=80", ""},
          {"core=81", "needs 81 cores, the inventory has 80"},
          {"slot=80/core", ""},
          {"gpu", "needs 1 gpu, the inventory has 0"},
          // The smallest acceptable count decides.
          {"node=10+", ""},
          {"node=11+", "needs 11 nodes, the inventory has 10"},
          {"slot=3-30/node", ""},
          {"slot=4,9,16,25/node", ""},
          {"node=2-64:2:*/slot=2/core=4+", ""},
          {"slot=10+/core=9-12",
           "needs 10 slots with 9 cores in one node each, the inventory has room for 0"},
      });
}

TEST_CASE("unequal nodes") {
  check_shapes(
      mixed(),
      {
          {"node=8/slot=2/gpu", ""},
          {"node=9/slot=2/gpu", "needs 9 nodes with 2 gpus, the inventory has 8"},
          {"node=13/slot=2/gpu", "needs 13 nodes with 2 gpus, the inventory has 8"},
          {"node=13/slot/core", "needs 13 nodes, the inventory has 12"},
          {"node=5/slot/core=8", "needs 5 nodes with 8 cores, the inventory has 4"},
          {"node=12/slot/core=4", ""},
          {"node/slot/[core=8;gpu]", "needs 1 node with 8 cores and 1 gpu, the inventory has 0"},
          {"slot=24/core=4", ""},
          {"slot=25/core=4", "needs 25 slots with 4 cores in one node each, the inventory has room for 24"},
          {"slot=16/[core=2;gpu]", ""},
          {"slot=16/[core=3;gpu]",
           "needs 16 slots with 3 cores and 1 gpu in one node each, the inventory has room for 8"},
          {"core=96", ""},
      });
}

TEST_CASE("several vertices are satisfied at the same time") {
  check_shapes(
      mixed(),
      {
          {"[node=8/slot{a}/gpu;node=4/slot{b}/core=16]", ""},
          {"[node=8/slot{a}/core;node=4/slot{b}/core=4]", ""},
          {"[node=8/slot{a}/core;node=5/slot{b}/core]", "needs 13 nodes, the inventory has 12"},
          {"[node=8/slot{a}/core;node=5/slot{b}/core=2]", "needs 13 nodes in all, the inventory has 12"},
          // The requirement without gpus leaves the gpu nodes to the one that needs them.
          {"[node=4/slot{a}/core;node=8/slot{b}/gpu]", ""},
          {"[node=3/slot{a}/[core=2;gpu];node=6/slot{b}/gpu=2]",
           "needs 3 nodes with 2 cores and 1 gpu and 6 nodes with 2 gpus at the same time, the inventory has "
           "8 nodes for them"},
          // A node outside of a slot shares its remaining resources, a node in a slot does not.
          {"[node=12/slot{a}/core=2;slot=72{b}/core]", ""},
          {"[node=12/slot{a}/core=2;slot=73{b}/core]", "needs 97 cores in all, the inventory has 96"},
          {"[node=12{x}/slot{a}/core=2;slot{b}/core]",
           "needs 12 whole nodes with 2 cores and 1 core at the same time, the inventory does not have "
           "that"},
          {"[slot=11{a}/node;slot=16{b}/core]", ""},
          {"[slot=12{a}/node;slot{b}/core]",
           "needs 12 whole nodes and 1 core at the same time, the inventory does not have that"},
          {"[slot=12{a}/node{-x}/core=2;slot=72{b}/core]", ""},
          // Lists below a vertex.
          {"node=4/[slot=2{a}/core=4;slot{b}/core=8]", ""},
          {"node=4/[slot=2{a}/core=4;slot{b}/core=9]", "needs 4 nodes with 17 cores, the inventory has 0"},
          {"slot=4/[node=2;node/core=16]", ""},
          {"slot=5/[node;node/core=16]", "needs 5 nodes with 16 cores, the inventory has 4"},
          // Slots of several kinds share the same nodes.
          {"[slot=4{a}/core=10;slot=4{b}/core=6;slot=8{c}/core=4]", ""},
          {"[slot=4{a}/core=10;slot=4{b}/core=7;slot=8{c}/core=4]",
           "needs 100 cores in all, the inventory has 96"},
          {"[slot=16{a}/[core=2;gpu];slot=4{b}/core=16]", ""},
          {"[slot=16{a}/[core=2;gpu];slot=20{b}/core=3]", ""},
          {"[slot=16{a}/[core=2;gpu];slot=21{b}/core=3]",
           "needs 16 slots with 2 cores and 1 gpu and 21 slots with 3 cores at the same time, the inventory "
           "does not have that"},
      });
}

TEST_CASE("a constraint narrows the targets first") {
  check_shapes(mixed(),
               {{"node=8", ""},
                {"node=9", "needs 9 nodes, the matching part of the inventory has 8"},
                {"slot/core=5",
                 "needs 1 slot with 5 cores in one node, the matching part of the inventory has room for 0"}},
               parse_query("gpu"));
  check_shapes(
      mixed(),
      {{"node=2/slot/gpu", ""}, {"core=25", "needs 25 cores, the matching part of the inventory has 24"}},
      parse_query("host:n[6-7] or rank:8"));
  check_shapes(mixed(), {{"node", "no target matches the constraint"}}, parse_query("gpu&big"));
  check_shapes(ResourceSet(), {{"node", "the inventory is empty"}});
}

TEST_CASE("what R does not have cannot be judged") {
  check_shapes(mixed(),
               {
                   {"node/memory=4", "cannot check the type memory: R has only nodes, cores and gpus"},
                   {"node=2/socket=2/core", "cannot check the type socket: R has only nodes, cores and gpus"},
                   {"[cluster/slot{a}/node;switch/slot{b}/node]",
                    "cannot check the type cluster, the type switch: R has only nodes, cores and gpus"},
                   {"node/node", "cannot check a node below a node: R has only nodes, cores and gpus"},
                   {"core/pu=2", "cannot check resources below a core: R has only nodes, cores and gpus"},
                   {"node{id:\"3\"}", "cannot check the id of a node: R has only nodes, cores and gpus"},
                   {"node{model:fast}", "cannot check the key model: R has only nodes, cores and gpus"},
               });
  CHECK(check_feasibility(parse_shape("node/memory"), Constraint(), mixed()).verdict == Verdict::undecided);
}

TEST_CASE("a request of very many different slots is not decided") {
  const ResourceSet set({group("0-999", "0-799", "")}, Hostlist::parse("n[0-999]"));
  std::string shape = "[slot{s0}/core=1";
  for (int i = 1; i < 600; ++i) shape += fmt::format(";slot{{s{}}}/core={}", i, i + 1);
  const Feasibility answer = check_feasibility(parse_shape(shape + "]"), Constraint(), set);
  CHECK(answer.verdict == Verdict::undecided);
  CHECK(answer.reason ==
        "cannot check 1 core, 1 slot with 2 cores, 1 slot with 3 cores, 1 slot with 4 cores and 596 more at "
        "the "
        "same time: too many ways to place them");
}

TEST_CASE("the size of the inventory does not matter") {
  const ResourceSet set({group("0-99999", "0-95", "0-3"), group("100000-131071", "0-127", "")},
                        Hostlist::parse("n[0-131071]"));
  check_shapes(set, {
                        {"node=131072/slot=24/core=4", ""},
                        {"node=131073", "needs 131073 nodes, the inventory has 131072"},
                        {"[node=100000/slot=4{a}/[core;gpu];node=31072/slot{b}/core=128]", ""},
                        {"[node=100000/slot=4{a}/[core;gpu];node=31073/slot{b}/core=128]",
                         "needs 31073 nodes with 128 cores, the inventory has 31072"},
                        {"slot=400000/[core=24;gpu]", ""},
                        {"[slot=400000{a}/[core=20;gpu];slot=100000{b}/core=16]", ""},
                        {"slot=4611686018427387904/core=4611686018427387904",
                         "needs 4611686018427387904 slots with 4611686018427387904 cores in one node each, "
                         "the inventory has room for 0"},
                        {"node=18446744073709551615/slot=18446744073709551615/core=18446744073709551615",
                         "needs 4611686018427387904 nodes, the inventory has 131072"},
                    });
}

TEST_CASE("a jobspec brings its resources and constraints") {
  const Json jobspec = Json::parse(R"({
    "version": 1,
    "resources": [{"type": "node", "count": 8, "with": [
      {"type": "slot", "count": 1, "label": "default", "with": [{"type": "core", "count": 4}]}]}],
    "attributes": {"system": {"duration": 0, "constraints": {"properties": ["gpu"]}}},
    "tasks": [{"command": ["app"], "slot": "default", "count": {"per_slot": 1}}]})");
  CHECK(check_jobspec_feasibility(jobspec, mixed()).feasible());

  Json big = jobspec;
  big["attributes"]["system"]["constraints"] = {{"properties", {"big"}}};
  CHECK(check_jobspec_feasibility(big, mixed()).reason ==
        "needs 8 nodes, the matching part of the inventory has 4");
  for (const char* attributes :
       {"null", "{}", R"({"system": null})", R"({"system": {"constraints": null}})"}) {
    Json loose = jobspec;
    loose["attributes"] = Json::parse(attributes);
    CHECK(check_jobspec_feasibility(loose, mixed()).feasible());
  }
}

struct JobspecError {
  std::string jobspec;
  std::string text;
};

TEST_CASE("a jobspec that is wrong is an error with its path") {
  const std::vector<JobspecError> cases{
      {"[]", "jobspec: must be an object"},
      {"{}", "resources: is missing"},
      {R"({"resources": {}})", "resources: must be an array"},
      {R"({"resources": []})", "resources: must have at least one vertex"},
      {R"({"resources": [{"type": "node"}]})", "resources[0].count: is missing"},
      {R"({"resources": [{"type": "slot", "count": 1, "label": "a"}]})",
       "resources[0].with: is missing or empty: a slot needs at least one vertex in it"},
      {R"({"resources": [{"type": "node", "count": 1}], "attributes": []})", "attributes: must be an object"},
      {R"({"resources": [{"type": "node", "count": 1}], "attributes": {"system": {"constraints": []}}})",
       "attributes.system.constraints: must be an object"},
      {R"({"resources": [{"type": "node", "count": 1}], "attributes": {"system": {"constraints": {"x": []}}}})",
       "attributes.system.constraints: unknown operator \"x\""},
  };
  for (const JobspecError& error : cases) {
    CAPTURE(error.jobspec);
    CHECK_THROWS_WITH_AS(static_cast<void>(check_jobspec_feasibility(Json::parse(error.jobspec), mixed())),
                         error.text.c_str(), Error);
  }
}

/// The naive search: expands the request into single nodes and slots, and tries each on every node.
struct Single {
  bool is_node;
  bool whole;
  unsigned cores;
  unsigned gpus;
};

struct Node {
  unsigned cores;
  unsigned gpus;
  bool asked_for;
  bool closed;
  bool used;
};

/// The smallest number of a range or an idset, which is the first in its text.
unsigned smallest(const Json& count) {
  if (count.is_string()) return static_cast<unsigned>(std::stoul(count.get<std::string>()));
  return count.is_object() ? count.at("min").get<unsigned>() : count.get<unsigned>();
}

void write_out_inside(const Json& list, Single& into) {
  for (const Json& vertex : list) {
    for (unsigned i = 0; i < smallest(vertex.at("count")); ++i) {
      if (vertex.at("type") == "core") ++into.cores;
      if (vertex.at("type") == "gpu") ++into.gpus;
      if (vertex.contains("with")) write_out_inside(vertex.at("with"), into);
    }
  }
}

void write_out(const Json& list, bool in_slot, std::vector<Single>& singles) {
  for (const Json& vertex : list) {
    for (unsigned i = 0; i < smallest(vertex.at("count")); ++i) {
      const std::string type = vertex.at("type");
      Single single{type == "node", false, type == "core" ? 1U : 0U, type == "gpu" ? 1U : 0U};
      if (type == "node") {
        single.whole = vertex.value("exclusive", in_slot);
        write_out_inside(vertex.value("with", Json::array()), single);
      } else if (type == "slot" && vertex.at("with").at(0).at("type") == "node") {
        write_out(vertex.at("with"), true, singles);
        continue;
      } else if (type == "slot") {
        write_out_inside(vertex.at("with"), single);
      }
      singles.push_back(single);
    }
  }
}

bool place(const std::vector<Single>& singles, std::size_t next, std::vector<Node>& nodes) {
  if (next == singles.size()) return true;
  const Single& single = singles[next];
  for (Node& node : nodes) {
    if (node.closed || node.cores < single.cores || node.gpus < single.gpus) continue;
    if (single.is_node && (node.asked_for || (single.whole && node.used))) continue;
    const Node before = node;
    node.cores -= single.cores;
    node.gpus -= single.gpus;
    node.used = true;
    node.asked_for = node.asked_for || single.is_node;
    node.closed = single.whole;
    const bool placed = place(singles, next + 1, nodes);
    node = before;
    if (placed) return true;
  }
  return false;
}

class RandomRequests {
 public:
  explicit RandomRequests(unsigned seed) : engine_(seed) {}
  unsigned between(unsigned low, unsigned high) {
    return std::uniform_int_distribution<unsigned>(low, high)(engine_);
  }
  bool chance(unsigned percent) { return between(1, 100) <= percent; }

 private:
  std::mt19937 engine_;
};

/// A count from 1 to `most`, as an integer, a range or an idset.
Json count(RandomRequests& random, unsigned most) {
  const unsigned least = random.between(1, most);
  switch (random.between(0, 11)) {
    case 0:
      return {{"min", least}};
    case 1:
      return {{"min", least}, {"max", least * 4}, {"operator", "*"}, {"operand", 2}};
    case 2:
      return fmt::format("{}-{}:3", least, least + 5);
    case 3:
      return fmt::format("{},{},{}-{}", least, least + 1, least + 7, least + 9);
    default:
      return least;
  }
}

Json cores_and_gpus(RandomRequests& random) {
  Json list = Json::array();
  list.push_back({{"type", "core"}, {"count", count(random, 4)}});
  if (random.chance(35)) list.push_back({{"type", "gpu"}, {"count", count(random, 2)}});
  return list;
}

Json slot(RandomRequests& random, unsigned& label, Json with, unsigned most) {
  return {{"type", "slot"},
          {"count", count(random, most)},
          {"label", fmt::format("s{}", label++)},
          {"with", std::move(with)}};
}

Json node(RandomRequests& random, unsigned& label) {
  Json vertex{{"type", "node"}, {"count", count(random, 3)}};
  if (random.chance(70)) vertex["with"] = Json::array({slot(random, label, cores_and_gpus(random), 2)});
  if (random.chance(30)) vertex["exclusive"] = random.chance(50);
  return vertex;
}

Json random_request(RandomRequests& random) {
  unsigned label = 0;
  Json list = Json::array();
  for (unsigned vertices = random.between(1, 3); vertices > 0; --vertices) {
    switch (random.between(0, 4)) {
      case 0:
        list.push_back(node(random, label));
        break;
      case 1:
        list.push_back(slot(random, label, Json::array({node(random, label)}), 2));
        break;
      case 2:
        list.push_back({{"type", random.chance(70) ? "core" : "gpu"}, {"count", count(random, 6)}});
        break;
      default:
        list.push_back(slot(random, label, cores_and_gpus(random), 4));
        break;
    }
  }
  return list;
}

/// A constraint, and whether a node of this rank, with or without the property, satisfies it.
struct RandomConstraint {
  const char* text;
  bool (*matches)(unsigned rank, bool fast);
};

const std::vector<RandomConstraint>& constraints() {
  static const std::vector<RandomConstraint> some{
      {"{}", [](unsigned, bool) { return true; }},
      {R"({"properties": ["fast"]})", [](unsigned, bool fast) { return fast; }},
      {R"({"properties": ["^fast"]})", [](unsigned, bool fast) { return !fast; }},
      {R"({"hostlist": ["n[1-3]"]})", [](unsigned rank, bool) { return rank < 3; }},
      {R"({"or": [{"ranks": ["0-1"]}, {"properties": ["fast"]}]})",
       [](unsigned rank, bool fast) { return rank < 2 || fast; }},
      {R"({"not": [{"ranks": ["0"]}]})", [](unsigned rank, bool) { return rank != 0; }},
  };
  return some;
}

TEST_CASE("agrees with a naive search on small inventories") {
  constexpr unsigned seed = 31;
  constexpr int cases = 2000;
  INFO("seed ", seed);
  RandomRequests random(seed);
  int feasible = 0;
  for (int i = 0; i < cases; ++i) {
    const unsigned size = random.between(1, 5);
    std::vector<rset::ResourceGroup> groups;
    std::vector<Node> nodes;
    IdSet fast_ranks;
    const RandomConstraint& constraint = constraints()[random.chance(60) ? 0 : random.between(1, 5)];
    for (unsigned rank = 0; rank < size; ++rank) {
      const unsigned cores = random.between(1, 2) * 4 - random.between(0, 1);
      const unsigned gpus = random.chance(40) ? 2 : 0;
      const bool fast = random.chance(60);
      if (fast) fast_ranks.insert(rank);
      if (constraint.matches(rank, fast)) nodes.push_back({cores, gpus, false, false, false});
      groups.push_back(
          {IdSet{rank}, IdSet::range(0, cores - 1), gpus > 0 ? IdSet::range(0, gpus - 1) : IdSet{}});
    }
    ResourceSet inventory(groups, Hostlist::parse(fmt::format("n[1-{}]", size)));
    inventory.add_property("fast", fast_ranks);
    const Json request = random_request(random);
    std::vector<Single> singles;
    write_out(request, false, singles);
    const bool expected = place(singles, 0, nodes);
    feasible += expected ? 1 : 0;

    INFO(request.dump(), " where ", constraint.text, " on ", inventory.encode());
    const Feasibility answer =
        check_feasibility(resources_from_json(request, jobspec::ExtraKeys::refused),
                          Constraint::from_json(Json::parse(constraint.text)), inventory);
    REQUIRE(answer.verdict == (expected ? Verdict::feasible : Verdict::infeasible));
    REQUIRE(answer.reason.empty() == expected);
  }
  CHECK(feasible > cases / 10);
  CHECK(feasible < cases - cases / 10);
}

}  // namespace
}  // namespace resourced::feasibility

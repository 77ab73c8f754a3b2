// Resource graphs in `scheduling.graph` (JSON Graph Format): validation, and an R with only a graph (the
// earlier edition of RFC 20).

#include "core/rset/graph.hpp"

#include <functional>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/rset/short_form.hpp"

namespace resourced::rset {

using text::IdSet;

namespace {

using nlohmann::json;

enum class EdgeForm { flat, nested };

json vertex(const std::string& id, const std::string& type, int number, json more = json::object()) {
  json metadata{{"type", type},     {"uuid", "u" + id},
                {"basename", type}, {"name", type + std::to_string(number)},
                {"id", number},     {"properties", json::object()},
                {"size", 1},        {"unit", ""}};
  metadata.update(more);
  return {{"id", id}, {"metadata", metadata}};
}

json edge(const std::string& source, const std::string& target, const std::string& relationship,
          EdgeForm form) {
  json metadata = form == EdgeForm::flat ? json{{"subsystem", "containment"}, {"relationship", relationship}}
                                         : json{{"name", {{"containment", relationship}}}};
  return {{"source", source}, {"target", target}, {"metadata", metadata}};
}

/// A graph of cluster > node > socket > core, with gpus directly below the node of rank 1, which comes first.
json graph(EdgeForm form) {
  json nodes = json::array();
  json edges = json::array();
  const auto contain = [&](const std::string& parent, const std::string& child) {
    edges.push_back(edge(parent, child, "contains", form));
    edges.push_back(edge(child, parent, "in", form));
  };
  nodes.push_back(vertex("0", "cluster", 0));
  nodes.push_back(vertex("1", "node", 1, {{"rank", 1}, {"name", "beta"}, {"properties", {{"fat", ""}}}}));
  nodes.push_back(vertex("2", "node", 0, {{"rank", 0}, {"name", "alpha"}, {"properties", {"fat", "old"}}}));
  contain("0", "1");
  contain("0", "2");
  nodes.push_back(vertex("s1", "socket", 0));
  nodes.push_back(vertex("s2", "socket", 0));
  contain("1", "s1");
  contain("2", "s2");
  for (int core = 0; core < 2; ++core) {
    for (const std::string node : {"1", "2"}) {
      const std::string id = "c" + node + std::to_string(core);
      nodes.push_back(vertex(id, "core", core));
      contain("s" + node, id);
    }
  }
  nodes.push_back(vertex("g", "gpu", 3));
  contain("1", "g");
  return {{"nodes", nodes}, {"edges", edges}};
}

json graph_document(const json& graph) {
  return {{"version", 1}, {"scheduling", {{"graph", graph}}}, {"attributes", {{"system", json::object()}}}};
}

TEST_CASE("an R that is only a graph gets its execution section from it, and keeps the graph") {
  for (const EdgeForm form : {EdgeForm::flat, EdgeForm::nested}) {
    const json given = graph_document(graph(form));
    for (const ResourceSet& set : {ResourceSet::from_json(given), ResourceSet::parse(given.dump())}) {
      CHECK(short_form(set) == "rank0/core[0-1] rank1/core[0-1],gpu3");
      CHECK(set.nodelist().encode() == "alpha,beta");
      CHECK(set.properties() == ResourceSet::Properties{{"fat", IdSet::parse("0-1")}, {"old", IdSet{0}}});
      CHECK(json::parse(*set.scheduling()) == given["scheduling"]);
      CHECK(set.to_json()["attributes"] == given["attributes"]);
      CHECK(ResourceSet::parse(set.encode()) == set);
      CHECK(json::parse(*set.copy_ranks(IdSet{1}).scheduling()) == given["scheduling"]);
    }
  }
}

TEST_CASE("a graph beside an execution section is opaque") {
  const json given = json::parse(
      R"({"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"nodelist":["a"]},
          "scheduling":{"graph":"whatever"}})");
  CHECK(json::parse(*ResourceSet::from_json(given).scheduling()) == given["scheduling"]);
}

std::string error_of(const json& document) {
  try {
    static_cast<void>(ResourceSet::from_json(document));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

struct Broken {
  std::function<void(json& graph)> change;
  /// The beginning of the error text.
  std::string error;
};

TEST_CASE("a graph that is not one is refused with its path") {
  const std::vector<Broken> rows{
      {[](json& g) { g = json::array(); }, "scheduling.graph: is not an object"},
      {[](json& g) { g.erase("nodes"); }, "scheduling.graph.nodes: is missing"},
      {[](json& g) { g.erase("edges"); }, "scheduling.graph.edges: is missing"},
      {[](json& g) { g["nodes"] = 1; }, "scheduling.graph.nodes: is not an array"},
      {[](json& g) { g["edges"] = 1; }, "scheduling.graph.edges: is not an array"},
      {[](json& g) { g["nodes"][0] = 1; }, "scheduling.graph.nodes[0]: is not an object"},
      {[](json& g) { g["nodes"][2]["id"] = "1"; },
       "scheduling.graph.nodes[2].id: \"1\" is the id of another vertex too"},
      {[](json& g) { g["nodes"][2]["id"] = 2; }, "scheduling.graph.nodes[2].id: is not a string"},
      {[](json& g) { g["nodes"][2].erase("metadata"); }, "scheduling.graph.nodes[2].metadata: is missing"},
      {[](json& g) { g["nodes"][2]["metadata"]["type"] = 1; },
       "scheduling.graph.nodes[2].metadata.type: is not a string"},
      {[](json& g) { g["nodes"][2]["metadata"]["size"] = "1"; },
       "scheduling.graph.nodes[2].metadata.size: is not an integer"},
      {[](json& g) { g["nodes"][2]["metadata"]["properties"] = 1; },
       "scheduling.graph.nodes[2].metadata.properties: is neither an object nor an array"},
      {[](json& g) { g["nodes"][2]["metadata"].erase("rank"); },
       "scheduling.graph.nodes[2].metadata.rank: is missing"},
      {[](json& g) { g["nodes"][2]["metadata"]["rank"] = -1; },
       "scheduling.graph.nodes[2].metadata.rank: is not an integer from 0 to 4294967294"},
      {[](json& g) { g["nodes"][2]["metadata"]["rank"] = 1; },
       "scheduling.graph.nodes[2].metadata.rank: rank 1 is the rank of another node too"},
      {[](json& g) { g["nodes"][2]["metadata"]["name"] = "a b"; },
       "scheduling.graph.nodes[2].metadata.name: \"a b\" is not a host name"},
      {[](json& g) {
         g["nodes"][2]["metadata"]["properties"] = {{"a!", 1}};
       },
       "scheduling.graph.nodes[2].metadata.properties.\"a!\": a property name cannot have !"},
      {[](json& g) { g["edges"][0]["source"] = "nowhere"; },
       "scheduling.graph.edges[0].source: no vertex has the id \"nowhere\""},
      {[](json& g) { g["edges"][1].erase("target"); }, "scheduling.graph.edges[1].target: is missing"},
      {[](json& g) { g["edges"][1].erase("metadata"); }, "scheduling.graph.edges[1].metadata: is missing"},
      {[](json& g) { g["edges"][1]["metadata"] = json::object(); },
       "scheduling.graph.edges[1].metadata.subsystem: is missing"},
      {[](json& g) {
         g["edges"][1]["metadata"] = {{"subsystem", "power"}};
       },
       "scheduling.graph.edges[1].metadata.relationship: is missing"},
      {[](json& g) {
         g["edges"][1]["metadata"] = {{"name", json::object()}};
       },
       "scheduling.graph.edges[1].metadata.name: names no subsystem"},
      {[](json& g) {
         g["edges"][1]["metadata"] = {{"name", {{"power", 1}}}};
       },
       "scheduling.graph.edges[1].metadata.name.power: is not a string"},
      {[](json& g) { g["nodes"].push_back(vertex("lost", "core", 9)); },
       "scheduling.graph.nodes[10]: the core is not inside a node"},
      {[](json& g) { g["edges"].push_back(edge("2", "g", "contains", EdgeForm::flat)); },
       "scheduling.graph.nodes[9]: is contained in two nodes"},
      {[](json& g) { g["edges"].push_back(edge("1", "2", "contains", EdgeForm::flat)); },
       "scheduling.graph.nodes[2]: is a node inside a node"},
      {[](json& g) { g["nodes"][7]["metadata"]["id"] = 0; },
       "scheduling.graph.nodes[7].metadata.id: core 0 is in its node twice"},
      {[](json& g) {
         g["nodes"].push_back(vertex("n", "node", 9, {{"rank", 9}}));
       },
       "scheduling.graph.nodes[10]: has no cores"},
      {[](json& g) {
         for (const std::size_t core : {5U, 7U}) g["nodes"][core]["metadata"]["type"] = "thread";
       },
       "scheduling.graph.nodes[1]: has no cores"},
      {[](json& g) { g["nodes"][1]["metadata"]["size"] = 2; },
       "scheduling.graph.nodes[1].metadata.size: is not 1: a node vertex stands for one host"},
      {[](json& g) { g["nodes"][5]["metadata"]["size"] = -1; },
       "scheduling.graph.nodes[5].metadata.size: is not an integer from 0 to 4294967295"},
      {[](json& g) { g["nodes"][5]["metadata"]["size"] = 2; },
       "scheduling.graph.nodes[7].metadata.id: core 1 is in its node twice"},
      {[](json& g) {
         g["nodes"][9]["metadata"]["id"] = 4294967294;
         g["nodes"][9]["metadata"]["size"] = 2;
       },
       "scheduling.graph.nodes[9].metadata.size: is not an integer from 0 to 1"},
      {[](json& g) {
         g = {{"nodes", json::array()}, {"edges", json::array()}};
       },
       "scheduling.graph.nodes: has no node"},
  };
  for (const Broken& row : rows) {
    CAPTURE(row.error);
    json broken = graph(EdgeForm::flat);
    row.change(broken);
    CHECK(error_of(graph_document(broken)).substr(0, row.error.size()) == row.error);
  }
}

TEST_CASE("nodes of a graph without ranks are numbered in their order") {
  json unranked = graph(EdgeForm::flat);
  for (const std::size_t node : {1U, 2U}) unranked["nodes"][node]["metadata"].erase("rank");
  const ResourceSet set = ResourceSet::from_json(graph_document(unranked));
  CHECK(short_form(set) == "rank0/core[0-1],gpu3 rank1/core[0-1]");
  CHECK(set.nodelist().encode() == "beta,alpha");
}

TEST_CASE("a vertex of size n is n cores or gpus, whose ids begin with its own") {
  json pools = graph(EdgeForm::flat);
  pools["nodes"][5]["metadata"]["size"] = 0;
  pools["nodes"][7]["metadata"]["size"] = 4;
  pools["nodes"][9]["metadata"]["size"] = 2;
  CHECK(short_form(ResourceSet::from_json(graph_document(pools))) ==
        "rank0/core[0-1] rank1/core[1-4],gpu[3-4]");
}

TEST_CASE("every key that vertex metadata must have is asked for") {
  for (const char* key : {"type", "uuid", "basename", "name", "id", "properties", "size", "unit"}) {
    json broken = graph(EdgeForm::nested);
    broken["nodes"][4]["metadata"].erase(key);
    const std::string error = std::string("graph.nodes[4].metadata.") + key + ": is missing";
    CHECK_THROWS_WITH_AS(check_graph(broken, "graph"), error.c_str(), Error);
  }
  CHECK_NOTHROW(check_graph(graph(EdgeForm::nested)));
  CHECK_NOTHROW(check_graph(graph(EdgeForm::flat)));
}

TEST_CASE("edges of other subsystems and relationships contain nothing") {
  json other = graph(EdgeForm::flat);
  other["edges"].push_back({{"source", "2"},
                            {"target", "g"},
                            {"metadata", {{"subsystem", "power"}, {"relationship", "contains"}}}});
  other["edges"].push_back(
      {{"source", "2"}, {"target", "g"}, {"metadata", {{"name", {{"power", "contains"}}}}}});
  CHECK(short_form(ResourceSet::from_json(graph_document(other))) == "rank0/core[0-1] rank1/core[0-1],gpu3");
}

TEST_CASE("containment that runs in circles ends") {
  json circle = graph(EdgeForm::flat);
  circle["edges"].push_back(edge("s1", "1", "contains", EdgeForm::flat));
  CHECK(short_form(ResourceSet::from_json(graph_document(circle))) == "rank0/core[0-1] rank1/core[0-1],gpu3");
}

}  // namespace
}  // namespace resourced::rset

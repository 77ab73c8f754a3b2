// A naive resource set, rank by rank, as a model for the real one, and random ones made from a seed.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/rset/resource_set.hpp"

namespace resourced::test {

using Ids = std::set<text::IdSet::Id>;

struct Node {
  std::string host;
  Ids cores;
  Ids gpus;
  std::set<std::string> properties;
  friend bool operator==(const Node&, const Node&) = default;
};

using Model = std::map<text::IdSet::Id, Node>;

inline text::IdSet id_set(const Ids& ids) {
  text::IdSet set;
  for (const text::IdSet::Id id : ids) set.insert(id);
  return set;
}

inline Ids ids_of(const text::IdSet& set) {
  Ids ids;
  set.for_each([&](text::IdSet::Id id) { ids.insert(id); });
  return ids;
}

inline Model model_of(const rset::ResourceSet& set) {
  Model model;
  for (const rset::ResourceGroup& group : set.groups())
    group.ranks.for_each([&](text::IdSet::Id rank) {
      REQUIRE(!model.contains(rank));
      model[rank] = {set.host(rank), ids_of(group.cores), ids_of(group.gpus), {}};
    });
  for (const auto& [name, ranks] : set.properties())
    ranks.for_each(
        [&, &property = name](text::IdSet::Id rank) { model.at(rank).properties.insert(property); });
  return model;
}

/// The keys of every random set that all operations must preserve.
inline nlohmann::json carried() {
  return nlohmann::json::parse(
      R"({"scheduling":{"writer":"other://x","deep":[1,2.5,{"a":null}],"big":18446744073709551615},)"
      R"("attributes":{"system":{"scheduler":{"queue":"batch"}}},"future":[true],"more":{"also":"kept"}})");
}

/// An R with one entry for each rank, in random order, so that reading has to sort and merge.
inline nlohmann::json document_of(const Model& model, std::mt19937& random) {
  using nlohmann::json;
  json entries = json::array();
  json hosts = json::array();
  std::map<std::string, Ids> properties;
  for (const auto& [rank, node] : model) {
    json children{{"core", id_set(node.cores).encode()}};
    if (!node.gpus.empty()) children["gpu"] = id_set(node.gpus).encode();
    entries.push_back({{"rank", std::to_string(rank)}, {"children", children}});
    hosts.push_back(node.host);
    for (const std::string& name : node.properties) properties[name].insert(rank);
  }
  std::shuffle(entries.begin(), entries.end(), random);
  const json along = carried();
  json document{{"version", 1}, {"scheduling", along["scheduling"]}, {"attributes", along["attributes"]}};
  document["future"] = along["future"];
  document["execution"] = {{"R_lite", entries}, {"nodelist", hosts}, {"more", along["more"]}};
  document["execution"]["starttime"] = 1000.5;
  document["execution"]["expiration"] = 2000.25;
  for (const auto& [name, ranks] : properties)
    document["execution"]["properties"][name] = id_set(ranks).encode();
  return document;
}

inline rset::ResourceSet set_of(const Model& model, std::mt19937& random) {
  return rset::ResourceSet::from_json(document_of(model, random));
}

inline bool flip(std::mt19937& random) { return random() % 2 == 0; }

inline Ids some_of(const Ids& from, std::mt19937& random) {
  Ids some;
  for (const text::IdSet::Id id : from)
    if (flip(random)) some.insert(id);
  return some;
}

inline Ids ranks_of(const Model& model) {
  Ids ranks;
  for (const auto& [rank, node] : model) ranks.insert(rank);
  return ranks;
}

/// Up to 40 ranks with gaps; a few kinds of node, so that some ranks are equal; hosts in no particular order.
inline Model random_model(std::mt19937& random) {
  const std::vector<Ids> kinds_of_cores{{0, 1, 2, 3}, {0, 2}, {5}, {1}};
  const std::vector<Ids> kinds_of_gpus{{}, {0}, {0, 1}, {7}};
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("host" + std::to_string(i));
  std::shuffle(names.begin(), names.end(), random);
  Model model;
  for (std::size_t count = 1 + random() % 40; model.size() < count;) {
    Node node;
    node.cores = kinds_of_cores[random() % 4];
    node.gpus = kinds_of_gpus[random() % 4];
    node.host = names[model.size()];
    for (const char* name : {"big", "amd@gpu", "+local"})
      if (flip(random)) node.properties.insert(name);
    model.emplace(random() % 60, node);
  }
  return model;
}

/// Checks that the keys of carried() are preserved.
inline void check_carried(const rset::ResourceSet& set) {
  const nlohmann::json document = set.to_json();
  const nlohmann::json along = carried();
  CHECK(document["scheduling"] == along["scheduling"]);
  CHECK(document["attributes"] == along["attributes"]);
  CHECK(document["future"] == along["future"]);
  CHECK(document["execution"]["more"] == along["more"]);
  CHECK(document["execution"]["starttime"] == 1000.5);
  CHECK(document["execution"]["expiration"] == 2000.25);
}

}  // namespace resourced::test

#include "core/rset/graph.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/rset/group_table.hpp"
#include "core/rset/json_check.hpp"
#include "core/rset/property_name.hpp"
#include "core/text/quote.hpp"

namespace resourced::rset {

using nlohmann::json;
using text::IdSet;

namespace {

struct Vertex {
  std::string_view type;
  std::string_view name;
  const json* metadata = nullptr;
  std::vector<std::size_t> contains;
};

/// Checks the document and keeps the parts that the derivation needs. The document must outlive this object,
/// which refers to it.
class Graph {
 public:
  Graph(const json& graph, std::string_view path) : path_(path) {
    expect_object(graph, path_);
    const json& nodes = expect_array(required(graph, path_, "nodes"), member_path(path_, "nodes"));
    const json& edges = expect_array(required(graph, path_, "edges"), member_path(path_, "edges"));
    vertices_.reserve(nodes.size());
    for (const json& node : nodes) read_vertex(node);
    std::size_t index = 0;
    for (const json& edge : edges) read_edge(edge, index++);
  }

  [[nodiscard]] const std::vector<Vertex>& vertices() const noexcept { return vertices_; }
  [[nodiscard]] std::string nodes_path() const { return member_path(path_, "nodes"); }
  [[nodiscard]] std::string vertex_path(std::size_t index) const {
    return fmt::format("{}.nodes[{}]", path_, index);
  }
  [[nodiscard]] std::string metadata_path(std::size_t index, std::string_view key) const {
    return fmt::format("{}.metadata.{}", vertex_path(index), key);
  }

 private:
  void read_vertex(const json& node) {
    const std::size_t index = vertices_.size();
    const std::string path = vertex_path(index);
    expect_object(node, path);
    const std::string& id = expect_string(required(node, path, "id"), member_path(path, "id"));
    if (!by_id_.emplace(id, index).second)
      fail_at(member_path(path, "id"),
              fmt::format("{} is the id of another vertex too", text::quoted(std::string_view(id))));
    const std::string inner = member_path(path, "metadata");
    const json& metadata = expect_object(required(node, path, "metadata"), inner);
    for (const std::string_view key :
         {"type", "uuid", "basename", "name", "id", "properties", "size", "unit"})
      static_cast<void>(required(metadata, inner, key));
    const auto text = [&](std::string_view key) -> std::string_view {
      return expect_string(metadata.at(key), member_path(inner, key));
    };
    for (const std::string_view key : {"basename", "unit"}) static_cast<void>(text(key));
    for (const std::string_view key : {"id", "size"})
      if (!metadata.at(key).is_number_integer()) fail_at(member_path(inner, key), "is not an integer");
    if (!metadata.at("properties").is_structured())
      fail_at(member_path(inner, "properties"), "is neither an object nor an array");
    vertices_.push_back({text("type"), text("name"), &metadata, {}});
  }

  std::size_t end_of(const json& edge, const std::string& path, std::string_view key) const {
    const std::string place = member_path(path, key);
    const std::string& id = expect_string(required(edge, path, key), place);
    const auto vertex = by_id_.find(id);
    if (vertex == by_id_.end())
      fail_at(place, fmt::format("no vertex has the id {}", text::quoted(std::string_view(id))));
    return vertex->second;
  }

  void read_edge(const json& edge, std::size_t index) {
    const std::string path = fmt::format("{}.edges[{}]", path_, index);
    expect_object(edge, path);
    const std::size_t source = end_of(edge, path, "source");
    const std::size_t target = end_of(edge, path, "target");
    const std::string inner = member_path(path, "metadata");
    const json& metadata = expect_object(required(edge, path, "metadata"), inner);
    if (is_containment(metadata, inner)) vertices_[source].contains.push_back(target);
  }

  static bool is_containment(const json& metadata, const std::string& path) {
    const json* nested = member(metadata, "name");
    if (nested == nullptr || metadata.contains("subsystem")) {
      const std::string& subsystem =
          expect_string(required(metadata, path, "subsystem"), member_path(path, "subsystem"));
      const std::string& relationship =
          expect_string(required(metadata, path, "relationship"), member_path(path, "relationship"));
      return subsystem == "containment" && relationship == "contains";
    }
    const std::string inner = member_path(path, "name");
    if (expect_object(*nested, inner).empty()) fail_at(inner, "names no subsystem");
    bool containment = false;
    for (const auto& [subsystem, relationship] : nested->items())
      if (expect_string(relationship, member_path(inner, subsystem)) == "contains" &&
          subsystem == "containment")
        containment = true;
    return containment;
  }

  std::string path_;
  std::vector<Vertex> vertices_;
  std::unordered_map<std::string_view, std::size_t> by_id_;
};

/// Finds the nodes of a graph, and the cores and gpus inside each.
class Derivation {
 public:
  explicit Derivation(const Graph& graph) : graph_(graph), owner_(graph.vertices().size()) {}

  GraphResources run() {
    const std::vector<Vertex>& vertices = graph_.vertices();
    has_ranks_ = std::any_of(vertices.begin(), vertices.end(), [](const Vertex& vertex) {
      return vertex.type == "node" && vertex.metadata->contains("rank");
    });
    for (std::size_t i = 0; i < vertices.size(); ++i)
      if (vertices[i].type == "node") take_node(i);
    if (hosts_.empty()) fail_at(graph_.nodes_path(), "has no node");
    for (std::size_t i = 0; i < vertices.size(); ++i)
      if (!owner_[i] && (vertices[i].type == "core" || vertices[i].type == "gpu"))
        fail_at(graph_.vertex_path(i), fmt::format("the {} is not inside a node", vertices[i].type));

    GraphResources found;
    found.groups = table_.finish(GroupTable::Repeats::refused, [this](const GroupTable::Conflict& conflict) {
      return Error(EINVAL, fmt::format("{}: rank {} is the rank of another node too",
                                       graph_.metadata_path(conflict.source, "rank"), conflict.rank));
    });
    for (const auto& [rank, host] : hosts_) found.hosts.append(host);
    found.properties = std::move(properties_);
    return found;
  }

 private:
  IdSet::Id number(std::size_t vertex, std::string_view key, IdSet::Id most = IdSet::max_id) const {
    const json& value = required(*graph_.vertices()[vertex].metadata,
                                 member_path(graph_.vertex_path(vertex), "metadata"), key);
    if (!value.is_number_integer() || value < 0 || value > most)
      fail_at(graph_.metadata_path(vertex, key), fmt::format("is not an integer from 0 to {}", most));
    return value.get<IdSet::Id>();
  }

  void take_node(std::size_t node) {
    if (graph_.vertices()[node].metadata->at("size") != 1)
      fail_at(graph_.metadata_path(node, "size"), "is not 1: a node vertex stands for one host");
    const IdSet::Id rank = has_ranks_ ? number(node, "rank") : static_cast<IdSet::Id>(hosts_.size());
    if (!hosts_.emplace(rank, graph_.vertices()[node].name).second)
      fail_at(graph_.metadata_path(node, "rank"),
              fmt::format("rank {} is the rank of another node too", rank));
    check_host(node);
    IdSet cores;
    IdSet gpus;
    std::vector<std::size_t> open{node};
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      if (owner_[at]) {
        if (*owner_[at] == node) continue;
        fail_at(graph_.vertex_path(at), "is contained in two nodes");
      }
      owner_[at] = node;
      const Vertex& vertex = graph_.vertices()[at];
      if (vertex.type == "core") take(at, cores);
      if (vertex.type == "gpu") take(at, gpus);
      if (vertex.type == "node" && at != node) fail_at(graph_.vertex_path(at), "is a node inside a node");
      open.insert(open.end(), vertex.contains.rbegin(), vertex.contains.rend());
    }
    if (cores.empty()) fail_at(graph_.vertex_path(node), "has no cores");
    table_.add(IdSet{rank}, table_.children(cores, gpus, nullptr), node);
    take_properties(node, rank);
  }

  void check_host(std::size_t node) const {
    try {
      text::Hostlist().append(graph_.vertices()[node].name);
    } catch (const Error& error) {
      fail_at(graph_.metadata_path(node, "name"), error.what());
    }
  }

  // Adds the ids of a vertex, which is a pool of `size` things whose ids begin with its own.
  void take(std::size_t vertex, IdSet& ids) const {
    const IdSet::Id first = number(vertex, "id");
    const IdSet::Id size = number(vertex, "size", IdSet::max_id - first + 1);
    if (size == 0) return;
    const IdSet pool = IdSet::range(first, first + (size - 1));
    if (const IdSet twice = ids & pool; !twice.empty())
      fail_at(graph_.metadata_path(vertex, "id"),
              fmt::format("{} {} is in its node twice", graph_.vertices()[vertex].type, twice.first()));
    ids |= pool;
  }

  void take_properties(std::size_t node, IdSet::Id rank) {
    const json& properties = graph_.vertices()[node].metadata->at("properties");
    const std::string path = graph_.metadata_path(node, "properties");
    for (const auto& [key, value] : properties.items()) {
      const std::string& name = properties.is_array() ? expect_string(value, path) : key;
      const std::string defect = property_name_defect(name);
      if (!defect.empty()) fail_at(member_path(path, name), defect);
      properties_[name].insert(rank);
    }
  }

  const Graph& graph_;
  /// Whether any node has a rank. The earlier edition of RFC 20 does not list the key; without it ranks
  /// follow the order of the nodes.
  bool has_ranks_ = false;
  /// For each vertex, the node that contains it.
  std::vector<std::optional<std::size_t>> owner_;
  std::map<IdSet::Id, std::string_view> hosts_;
  GroupTable table_;
  ResourceSet::Properties properties_;
};

}  // namespace

void check_graph(const json& graph, std::string_view path) { static_cast<void>(Graph(graph, path)); }

GraphResources resources_of_graph(const json& graph, std::string_view path) {
  const Graph checked(graph, path);
  return Derivation(checked).run();
}

}  // namespace resourced::rset

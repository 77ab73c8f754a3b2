#include "core/feasibility/request_demand.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/quote.hpp"

namespace resourced::feasibility {

using constraint::Budget;
using constraint::plus;
using constraint::times;
using jobspec::Vertex;

namespace {

/// Maximum number of entries in RequestDemand::not_judged.
constexpr std::size_t max_named = 4;

constexpr std::uint64_t steps_per_vertex = 16;

struct Amounts {
  std::uint64_t cores = 0;
  std::uint64_t gpus = 0;

  void add(const Amounts& other) {
    cores = plus(cores, other.cores);
    gpus = plus(gpus, other.gpus);
  }
};

bool has_node(const Vertex& vertex, Budget& budget) {
  budget.spend(steps_per_vertex);
  return vertex.type == "node" ||
         std::ranges::any_of(vertex.with, [&](const Vertex& child) { return has_node(child, budget); });
}

void check_slot(const Vertex& slot) {
  if (slot.with.empty())
    throw Error(EINVAL, fmt::format("slot {} has no resources", text::quoted(slot.label.value_or(""))));
}

class Collector {
 public:
  explicit Collector(Budget& budget) : budget_(budget) {}

  /// Adds a vertex outside of nodes, `copies` times.
  void add(const Vertex& vertex, std::uint64_t copies, bool in_slot) {
    if (!can_judge(vertex)) return;
    const std::uint64_t count = times(copies, vertex.count.min());
    if (vertex.type == "node") {
      const Amounts amounts = of_children(vertex);
      add_nodes({count, amounts.cores, amounts.gpus, vertex.exclusive.value_or(in_slot)});
    } else if (vertex.is_slot()) {
      add_slot(vertex, count);
    } else {
      add_pieces({count, vertex.type == "core" ? 1U : 0U, vertex.type == "gpu" ? 1U : 0U});
    }
  }

  RequestDemand take() {
    for (const std::string& name : not_judged_)
      result_.not_judged += (result_.not_judged.empty() ? "" : ", ") + name;
    return std::move(result_);
  }

 private:
  /// Adds a slot: its resources except nodes are placed together in one node.
  void add_slot(const Vertex& slot, std::uint64_t count) {
    check_slot(slot);
    Amounts beside;
    for (const Vertex& child : slot.with) {
      if (has_node(child, budget_))
        add(child, count, true);
      else
        beside.add(of_vertex(child));
    }
    if (beside.cores + beside.gpus > 0) add_pieces({count, beside.cores, beside.gpus});
  }

  /// Returns the cores and gpus of a vertex inside a node, its count included.
  Amounts of_vertex(const Vertex& vertex) {
    if (!can_judge(vertex)) return {};
    Amounts each{vertex.type == "core" ? 1U : 0U, vertex.type == "gpu" ? 1U : 0U};
    if (vertex.type == "node") refuse("a node below a node");
    if (vertex.is_slot()) {
      check_slot(vertex);
      each = of_children(vertex);
    }
    return {times(vertex.count.min(), each.cores), times(vertex.count.min(), each.gpus)};
  }

  Amounts of_children(const Vertex& vertex) {
    Amounts amounts;
    for (const Vertex& child : vertex.with) amounts.add(of_vertex(child));
    return amounts;
  }

  bool can_judge(const Vertex& vertex) {
    budget_.spend(steps_per_vertex);
    const bool is_leaf = vertex.type == "core" || vertex.type == "gpu";
    if (!is_leaf && vertex.type != "node" && !vertex.is_slot()) {
      refuse("the type " + shown(vertex.type));
    } else if (vertex.id) {
      refuse("the id of a " + vertex.type);
    } else if (vertex.extra) {
      refuse("the key " + shown(vertex.extra->begin().key()));
    } else if (is_leaf && !vertex.with.empty()) {
      refuse("resources below a " + vertex.type);
    } else {
      return true;
    }
    return false;
  }

  /// Returns a word for a reason, without quotes if it is plain.
  static std::string shown(const std::string& word) {
    const std::string in_quotes = text::quoted(word);
    const bool plain =
        in_quotes.size() == word.size() + 2 && word.find(' ') == std::string::npos && !word.empty();
    return plain ? word : in_quotes;
  }

  void refuse(std::string what) {
    if (not_judged_.size() < max_named) not_judged_.insert(std::move(what));
  }

  void add_nodes(const NodeDemand& nodes) {
    const auto [place, is_new] =
        nodes_with_.try_emplace({nodes.cores, nodes.gpus, nodes.whole}, result_.demand.nodes.size());
    if (is_new)
      result_.demand.nodes.push_back(nodes);
    else
      result_.demand.nodes[place->second].count =
          plus(result_.demand.nodes[place->second].count, nodes.count);
  }

  void add_pieces(const PieceDemand& pieces) {
    const auto [place, is_new] =
        pieces_with_.try_emplace({pieces.cores, pieces.gpus}, result_.demand.pieces.size());
    if (is_new)
      result_.demand.pieces.push_back(pieces);
    else
      result_.demand.pieces[place->second].count =
          plus(result_.demand.pieces[place->second].count, pieces.count);
  }

  Budget& budget_;
  RequestDemand result_;
  std::set<std::string> not_judged_;
  /// Index of the demand with these cores and gpus, and for whole nodes or not.
  std::map<std::tuple<std::uint64_t, std::uint64_t, bool>, std::size_t> nodes_with_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> pieces_with_;
};

}  // namespace

RequestDemand demand_of(const jobspec::ResourceGraph& resources) {
  Budget unlimited;
  return demand_of(resources, unlimited);
}

RequestDemand demand_of(const jobspec::ResourceGraph& resources, Budget& budget) {
  Collector collector(budget);
  for (const Vertex& vertex : resources) collector.add(vertex, 1, false);
  return collector.take();
}

}  // namespace resourced::feasibility

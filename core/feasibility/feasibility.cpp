#include "core/feasibility/feasibility.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/feasibility/packing.hpp"
#include "core/feasibility/request.hpp"
#include "core/feasibility/request_demand.hpp"

namespace resourced::feasibility {

using constraint::Budget;
using constraint::Constraint;
using constraint::plus;
using constraint::times;
using jobspec::ResourceGraph;
using rset::ResourceSet;

namespace {

using Verdict = Feasibility::Verdict;

/// Maximum number of parts of a request that a reason names.
constexpr std::size_t max_parts_named = 4;

/// Budget steps to count the matching ranks of a group.
constexpr std::uint64_t steps_per_group = 32;

std::vector<NodeKind> kinds_of(const ResourceSet& inventory, const text::IdSet& ranks, Budget& budget) {
  budget.spend(steps_per_group * inventory.groups().size());
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> nodes;
  const bool all = ranks.count() == inventory.ranks().count();
  for (const rset::ResourceGroup& group : inventory.groups()) {
    const std::size_t count = all ? group.ranks.count() : (group.ranks & ranks).count();
    if (count > 0) nodes[{group.cores.count(), group.gpus.count()}] += count;
  }
  std::vector<NodeKind> kinds;
  kinds.reserve(nodes.size());
  for (const auto& [each, count] : nodes) kinds.push_back({count, each.first, each.second});
  return kinds;
}

std::string amount(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string with_what(std::uint64_t cores, std::uint64_t gpus) {
  if (cores == 0 && gpus == 0) return "";
  if (gpus == 0) return " with " + amount(cores, "core");
  if (cores == 0) return " with " + amount(gpus, "gpu");
  return fmt::format(" with {} and {}", amount(cores, "core"), amount(gpus, "gpu"));
}

std::string describe(const NodeDemand& node) {
  return amount(node.count, node.whole ? "whole node" : "node") + with_what(node.cores, node.gpus);
}

std::string describe(const PieceDemand& piece) {
  if (piece.cores + piece.gpus == 1) return amount(piece.count, piece.gpus == 0 ? "core" : "gpu");
  return amount(piece.count, "slot") + with_what(piece.cores, piece.gpus);
}

/// Builds the reason of a verdict: it names a shortage for one part of the request by itself, or else for all
/// parts together.
class Explanation {
 public:
  /// `holder` is the name of the nodes in a reason.
  Explanation(const std::vector<NodeKind>& kinds, const Demand& demand, std::string_view holder)
      : kinds_(kinds), demand_(demand), holder_(holder) {
    for (const NodeKind& kind : kinds) {
      supply_.count = plus(supply_.count, kind.count);
      supply_.cores = plus(supply_.cores, times(kind.count, kind.cores));
      supply_.gpus = plus(supply_.gpus, times(kind.count, kind.gpus));
    }
  }

  std::string text(const Packing& packing) const {
    for (const NodeDemand& node : demand_.nodes)
      if (const std::uint64_t found = nodes_for(kinds_, node); found < node.count) return of_nodes(node);
    for (const PieceDemand& piece : demand_.pieces)
      if (const std::uint64_t room = pieces_in(kinds_, piece); room < piece.count)
        return of_pieces(piece, room);
    if (const std::optional<std::string> total = of_totals()) return *total;
    std::vector<std::string> parts;
    if (!packing.rivals.empty()) {
      for (const std::size_t rival : packing.rivals) parts.push_back(describe(demand_.nodes[rival]));
      return fmt::format("needs {} at the same time, {} has {} for them", enumerate(parts), holder_,
                         amount(packing.nodes_for_rivals, "node"));
    }
    return fmt::format("needs {} at the same time, {} does not have that", all_parts(), holder_);
  }

  std::string all_parts() const {
    std::vector<std::string> parts;
    for (const NodeDemand& node : demand_.nodes) parts.push_back(describe(node));
    for (const PieceDemand& piece : demand_.pieces) parts.push_back(describe(piece));
    return enumerate(parts);
  }

 private:
  /// Describes only the part of the demand that cannot be met, gpus first since they are scarce.
  std::string of_nodes(const NodeDemand& node) const {
    NodeDemand named{node.count, 0, 0, false};
    for (const auto& [cores, gpus] : {std::pair(false, true), {true, false}, {true, true}}) {
      named.cores = cores ? node.cores : 0;
      named.gpus = gpus ? node.gpus : 0;
      if (nodes_for(kinds_, named) < named.count) break;
    }
    return fmt::format("needs {}, {} has {}", describe(named), holder_, nodes_for(kinds_, named));
  }

  std::string of_pieces(const PieceDemand& piece, std::uint64_t room) const {
    if (piece.cores + piece.gpus == 1)
      return fmt::format("needs {}, {} has {}", describe(piece), holder_, room);
    return fmt::format("needs {}{}, {} has room for {}", describe(piece),
                       piece.count == 1 ? " in one node" : " in one node each", holder_, room);
  }

  std::optional<std::string> of_totals() const {
    NodeKind need;
    const auto add = [&](const auto& part) {
      need.cores = plus(need.cores, times(part.count, part.cores));
      need.gpus = plus(need.gpus, times(part.count, part.gpus));
    };
    std::ranges::for_each(demand_.nodes, add);
    std::ranges::for_each(demand_.pieces, add);
    for (const NodeDemand& node : demand_.nodes) need.count = plus(need.count, node.count);
    const auto compare = [&](std::uint64_t needed, std::uint64_t found,
                             std::string_view noun) -> std::optional<std::string> {
      if (needed <= found) return std::nullopt;
      return fmt::format("needs {} in all, {} has {}", amount(needed, noun), holder_, found);
    };
    if (auto nodes = compare(need.count, supply_.count, "node")) return nodes;
    if (auto cores = compare(need.cores, supply_.cores, "core")) return cores;
    return compare(need.gpus, supply_.gpus, "gpu");
  }

  static std::string enumerate(const std::vector<std::string>& parts) {
    std::string text;
    for (std::size_t i = 0; i < std::min(parts.size(), max_parts_named); ++i)
      text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
    if (parts.size() > max_parts_named) text += fmt::format(" and {} more", parts.size() - max_parts_named);
    return text;
  }

  const std::vector<NodeKind>& kinds_;
  const Demand& demand_;
  std::string_view holder_;
  /// The totals of all nodes.
  NodeKind supply_;
};

}  // namespace

Feasibility check_feasibility(const ResourceGraph& resources, const Constraint& constraint,
                              const ResourceSet& inventory) {
  Budget unlimited;
  return check_feasibility(resources, constraint, inventory, unlimited);
}

Feasibility check_feasibility(const ResourceGraph& resources, const Constraint& constraint,
                              const ResourceSet& inventory, Budget& budget) {
  const RequestDemand request = demand_of(resources, budget);
  if (inventory.empty()) return {Verdict::infeasible, "the inventory is empty"};
  const text::IdSet ranks = constraint.match(inventory, budget);
  if (ranks.empty()) return {Verdict::infeasible, "no target matches the constraint"};
  if (!request.not_judged.empty())
    return {Verdict::undecided,
            fmt::format("cannot check {}: R has only nodes, cores and gpus", request.not_judged)};

  const std::vector<NodeKind> kinds = kinds_of(inventory, ranks, budget);
  const bool narrowed = ranks.count() < inventory.ranks().count();
  const Explanation explanation(kinds, request.demand,
                                narrowed ? "the matching part of the inventory" : "the inventory");
  const Packing packing = pack(kinds, request.demand, budget);
  switch (packing.answer) {
    case Packing::Answer::fits:
      return {};
    case Packing::Answer::does_not_fit:
      return {Verdict::infeasible, explanation.text(packing)};
    case Packing::Answer::unknown:
      break;
  }
  return {Verdict::undecided, fmt::format("cannot check {} at the same time: too many ways to place them",
                                          explanation.all_parts())};
}

Feasibility check_jobspec_feasibility(const nlohmann::json& jobspec, const ResourceSet& inventory) {
  Budget unlimited;
  return check_jobspec_feasibility(jobspec, inventory, unlimited);
}

Feasibility check_jobspec_feasibility(const nlohmann::json& jobspec, const ResourceSet& inventory,
                                      Budget& budget) {
  const Request request = read_request(jobspec, budget);
  return check_feasibility(request.resources, request.constraint, inventory, budget);
}

}  // namespace resourced::feasibility

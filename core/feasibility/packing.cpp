#include "core/feasibility/packing.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/feasibility/piece_search.hpp"

namespace resourced::feasibility {

using constraint::Budget;
using constraint::plus;
using constraint::times;

namespace {

using Answer = Packing::Answer;

constexpr std::uint64_t max_per_node = std::uint64_t{1} << 40U;

struct Totals {
  std::uint64_t nodes = 0;
  std::uint64_t cores = 0;
  std::uint64_t gpus = 0;

  template <class Part>
  void add(const Part& part) {
    cores = plus(cores, times(part.count, part.cores));
    gpus = plus(gpus, times(part.count, part.gpus));
  }
};

bool is_loose_unit(const PieceDemand& piece) { return piece.cores + piece.gpus == 1; }

/// Removes pieces of a single core or gpu: they fit wherever one is left, so the totals decide. That is not
/// possible beside demands for whole nodes, as the rest of such a node is lost.
Demand without_loose_units(const Demand& demand) {
  Demand rest = demand;
  const bool may_lose = std::ranges::any_of(demand.nodes, [](const NodeDemand& node) { return node.whole; });
  if (!may_lose) std::erase_if(rest.pieces, is_loose_unit);
  return rest;
}

Packing pack_nodes(const std::vector<NodeKind>& kinds, const std::vector<NodeDemand>& demands,
                   Budget& budget) {
  const LossTable no_loss(kinds.size(), std::vector<std::uint64_t>(demands.size(), 0));
  const std::optional<NodeAssignment> assignment = assign_nodes(kinds, demands, no_loss, budget);
  if (!assignment) return {Answer::unknown, {}, 0};
  if (assignment->rivals.empty()) return {};
  Packing packing{Answer::does_not_fit, assignment->rivals, 0};
  for (const NodeKind& kind : kinds) {
    const auto serves = [&](std::size_t demand) { return holds(kind, demands[demand]); };
    if (std::ranges::any_of(packing.rivals, serves)) packing.nodes_for_rivals += kind.count;
  }
  return packing;
}

Answer pack_one_kind(const std::vector<NodeKind>& kinds, const std::vector<NodeDemand>& demands,
                     const PieceDemand& piece, Budget& budget) {
  const std::optional<NodeAssignment> assignment =
      assign_nodes(kinds, demands, lost_pieces(kinds, demands, piece), budget);
  if (!assignment) return Answer::unknown;
  return pieces_in(kinds, piece) - assignment->loss >= piece.count ? Answer::fits : Answer::does_not_fit;
}

/// Checks necessary conditions of each demand and of all demands together.
bool may_fit(const std::vector<NodeKind>& kinds, const Totals& supply, const Demand& demand) {
  Totals need;
  for (const NodeDemand& node : demand.nodes) {
    if (nodes_for(kinds, node) < node.count) return false;
    need.nodes = plus(need.nodes, node.count);
    need.add(node);
  }
  for (const PieceDemand& piece : demand.pieces) {
    if (pieces_in(kinds, piece) < piece.count) return false;
    need.add(piece);
  }
  return need.nodes <= supply.nodes && need.cores <= supply.cores && need.gpus <= supply.gpus;
}

}  // namespace

std::uint64_t pieces_in(const NodeKind& kind, const PieceDemand& piece) {
  std::uint64_t pieces = std::numeric_limits<std::uint64_t>::max();
  if (piece.cores > 0) pieces = kind.cores / piece.cores;
  if (piece.gpus > 0) pieces = std::min(pieces, kind.gpus / piece.gpus);
  return pieces;
}

std::uint64_t pieces_in(const std::vector<NodeKind>& kinds, const PieceDemand& piece) {
  std::uint64_t pieces = 0;
  for (const NodeKind& kind : kinds) pieces = plus(pieces, times(kind.count, pieces_in(kind, piece)));
  return pieces;
}

std::uint64_t nodes_for(const std::vector<NodeKind>& kinds, const NodeDemand& demand) {
  std::uint64_t nodes = 0;
  for (const NodeKind& kind : kinds)
    if (holds(kind, demand)) nodes = plus(nodes, kind.count);
  return nodes;
}

Packing pack(const std::vector<NodeKind>& kinds, const Demand& demand) {
  Budget unlimited;
  return pack(kinds, demand, unlimited);
}

Packing pack(const std::vector<NodeKind>& kinds, const Demand& demand, Budget& budget) {
  // Each part of the demand is compared with each kind a few times, and the tables have a cell for each pair.
  budget.spend(times(4 * kinds.size(), demand.nodes.size() + demand.pieces.size()));
  Totals supply;
  for (const NodeKind& kind : kinds) {
    supply.nodes = plus(supply.nodes, kind.count);
    supply.add(kind);
    if (std::max(kind.cores, kind.gpus) > max_per_node) return {Answer::unknown, {}, 0};
  }
  // A total at the limit is not exact.
  if (std::max({supply.nodes, supply.cores, supply.gpus}) >= constraint::max_amount)
    return {Answer::unknown, {}, 0};

  Packing nodes = pack_nodes(kinds, demand.nodes, budget);
  if (nodes.answer == Answer::does_not_fit) return nodes;
  if (!may_fit(kinds, supply, demand)) return {Answer::does_not_fit, {}, 0};

  const Demand rest = without_loose_units(demand);
  if (rest.pieces.empty()) return nodes;
  if (rest.pieces.size() == 1) return {pack_one_kind(kinds, rest.nodes, rest.pieces[0], budget), {}, 0};
  return {search_for_packing(kinds, rest, budget), {}, 0};
}

}  // namespace resourced::feasibility

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <tuple>

#include "core/feasibility/packing.hpp"
#include "core/feasibility/piece_search.hpp"

namespace resourced::feasibility {

using constraint::Budget;

namespace {

/// Up to this many kinds of pieces are tried in every order, more kinds in two orders. Also the maximum
/// number of assignments of node demands that are tried, each at the least loss for one kind of piece.
constexpr std::size_t max_permuted = 4;

/// Returns the capacity that remains when every node demand has its nodes.
std::vector<NodeKind> after_assignment(const std::vector<NodeKind>& kinds,
                                       const std::vector<NodeDemand>& demands,
                                       const NodeAssignment& assignment) {
  std::vector<NodeKind> rest = kinds;
  for (std::size_t g = 0; g < kinds.size(); ++g) {
    for (std::size_t d = 0; d < demands.size(); ++d) {
      const std::uint64_t count = assignment.nodes[g][d];
      rest[g].count -= count;
      if (count > 0 && !demands[d].whole)
        rest.push_back({count, kinds[g].cores - demands[d].cores, kinds[g].gpus - demands[d].gpus});
    }
  }
  return rest;
}

/// Places all pieces; nodes that get pieces become kinds of their own. Returns false if the pieces do not
/// fit.
bool place(std::vector<NodeKind>& kinds, const PieceDemand& piece, Budget& budget) {
  // Pay for the sort: each comparison takes two divisions.
  budget.spend(16 * (1 + kinds.size()));
  std::ranges::sort(kinds, [&](const NodeKind& a, const NodeKind& b) {
    const auto left = [&](const NodeKind& kind) {
      const std::uint64_t pieces = pieces_in(kind, piece);
      return std::tuple(kind.gpus - pieces * piece.gpus, kind.cores - pieces * piece.cores);
    };
    return left(a) < left(b);
  });
  std::uint64_t missing = piece.count;
  const std::size_t present = kinds.size();
  for (std::size_t g = 0; g < present && missing > 0; ++g) {
    const auto fill = [&](std::uint64_t nodes, std::uint64_t pieces) {
      kinds[g].count -= nodes;
      missing -= nodes * pieces;
      kinds.push_back({nodes, kinds[g].cores - pieces * piece.cores, kinds[g].gpus - pieces * piece.gpus});
    };
    const std::uint64_t most = pieces_in(kinds[g], piece);
    if (most == 0) continue;
    fill(std::min(kinds[g].count, missing / most), most);
    if (kinds[g].count > 0 && missing > 0) fill(1, missing);
  }
  std::erase_if(kinds, [](const NodeKind& kind) { return kind.count == 0; });
  return missing == 0;
}

bool place_in_order(std::vector<NodeKind> kinds, const std::vector<PieceDemand>& pieces,
                    const std::vector<std::size_t>& order, Budget& budget) {
  return std::ranges::all_of(order, [&](std::size_t index) { return place(kinds, pieces[index], budget); });
}

bool place_in_some_order(const std::vector<NodeKind>& kinds, const std::vector<PieceDemand>& pieces,
                         Budget& budget) {
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (pieces.size() <= max_permuted) {
    do {
      if (place_in_order(kinds, pieces, order, budget)) return true;
    } while (std::ranges::next_permutation(order).found);
    return false;
  }
  std::ranges::sort(order, std::greater{},
                    [&](std::size_t i) { return std::tuple(pieces[i].gpus, pieces[i].cores); });
  if (place_in_order(kinds, pieces, order, budget)) return true;
  std::ranges::sort(order, std::greater{},
                    [&](std::size_t i) { return std::tuple(pieces[i].cores, pieces[i].gpus); });
  return place_in_order(kinds, pieces, order, budget);
}

}  // namespace

bool first_fit(const std::vector<NodeKind>& kinds, const Demand& demand, Budget& budget) {
  // Without node demands all assignments are equal: one is enough.
  const std::size_t assignments = demand.nodes.empty() ? 1 : std::min(demand.pieces.size(), max_permuted);
  for (std::size_t i = 0; i < assignments; ++i) {
    const std::optional<NodeAssignment> assignment =
        assign_nodes(kinds, demand.nodes, lost_pieces(kinds, demand.nodes, demand.pieces[i]), budget);
    if (!assignment || !assignment->rivals.empty()) return false;
    if (place_in_some_order(after_assignment(kinds, demand.nodes, *assignment), demand.pieces, budget))
      return true;
  }
  return false;
}

}  // namespace resourced::feasibility

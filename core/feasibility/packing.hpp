// Decides whether a demand fits into nodes: the combinatorial part of feasibility, without knowledge of
// jobspecs. Equal nodes are one kind with a count, and all costs follow kinds instead of nodes.
//
// The answer is exact for any counts of these: hundreds of different node demands with at most one kind of
// piece beside them, and single cores or gpus beside those where no demand takes whole nodes. With several
// kinds of pieces the question is one of bin packing: it is decided by first fit, by bounds and by search,
// and the answer is `unknown` if a bounded amount of work (a fraction of a second) does not decide it, or
// there are more than 512 different demands. An answer other than `unknown` is always right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/constraint/budget.hpp"

namespace resourced::feasibility {

/// A kind of nodes: `count` equal nodes.
struct NodeKind {
  std::uint64_t count = 0;
  std::uint64_t cores = 0;
  std::uint64_t gpus = 0;
};

/// A demand for `count` nodes with at least `cores` and `gpus` each. A node serves one demand only. Pieces
/// may use the rest of it, unless the demand takes whole nodes.
struct NodeDemand {
  std::uint64_t count = 0;
  std::uint64_t cores = 0;
  std::uint64_t gpus = 0;
  bool whole = false;
};

/// A demand for `count` pieces, each of which gets its cores and gpus in one node; a node may have many
/// pieces.
struct PieceDemand {
  std::uint64_t count = 0;
  std::uint64_t cores = 0;
  std::uint64_t gpus = 0;
};

struct Demand {
  std::vector<NodeDemand> nodes;
  /// Demands for pieces, each of which has cores or gpus.
  std::vector<PieceDemand> pieces;
};

struct Packing {
  enum class Answer { fits, does_not_fit, unknown };

  Answer answer = Answer::fits;
  /// If the node demands alone do not fit: indices of some that together need more nodes than satisfy any of
  /// them, and the number of these nodes.
  std::vector<std::size_t> rivals;
  std::uint64_t nodes_for_rivals = 0;
};

/// Decides whether a demand fits. It may have amounts of max_amount, which no nodes satisfy.
[[nodiscard]] Packing pack(const std::vector<NodeKind>& kinds, const Demand& demand);
/// The same within a budget.
[[nodiscard]] Packing pack(const std::vector<NodeKind>& kinds, const Demand& demand,
                           constraint::Budget& budget);

[[nodiscard]] constexpr bool holds(const NodeKind& kind, const NodeDemand& demand) {
  return kind.cores >= demand.cores && kind.gpus >= demand.gpus;
}

/// Number of pieces that one empty node of this kind holds.
[[nodiscard]] std::uint64_t pieces_in(const NodeKind& kind, const PieceDemand& piece);

/// Number of pieces that all nodes hold when they are empty; at most max_amount.
[[nodiscard]] std::uint64_t pieces_in(const std::vector<NodeKind>& kinds, const PieceDemand& piece);

/// Number of nodes that satisfy a demand.
[[nodiscard]] std::uint64_t nodes_for(const std::vector<NodeKind>& kinds, const NodeDemand& demand);

// An assignment gives every node demand its nodes at the least loss: a transportation problem between kinds
// of nodes and demands, solved exactly by successive shortest paths.

struct NodeAssignment {
  /// Number of nodes of kind g that go to demand d: nodes[g][d].
  std::vector<std::vector<std::uint64_t>> nodes;
  /// The total loss of the nodes that are assigned.
  std::uint64_t loss = 0;
  /// If there is no assignment: demands that together need more nodes than satisfy any of them.
  std::vector<std::size_t> rivals;
};

/// The loss of one node that goes to a demand: loss[g][d], read only where the kind satisfies the demand.
using LossTable = std::vector<std::vector<std::uint64_t>>;

/// Assigns nodes to demands. Returns nothing if it would take too much work. Requires that a node loses at
/// most 2^40, and all nodes together at most max_amount.
[[nodiscard]] std::optional<NodeAssignment> assign_nodes(const std::vector<NodeKind>& kinds,
                                                         const std::vector<NodeDemand>& demands,
                                                         const LossTable& loss, constraint::Budget& budget);

/// Returns how many pieces fewer a node holds after it goes to a demand.
[[nodiscard]] LossTable lost_pieces(const std::vector<NodeKind>& kinds,
                                    const std::vector<NodeDemand>& demands, const PieceDemand& piece);

}  // namespace resourced::feasibility

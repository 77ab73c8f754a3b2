// Whether things fit into nodes all at the same time: the combinatorial part of feasibility, without any
// notion of a jobspec. Nodes that are equal are one kind with a count, and all costs follow kinds, not nodes.
//
// Exact, whatever the counts: hundreds of different node demands with at most one kind of piece beside them,
// and single cores or gpus beside those where no demand takes whole nodes. With several kinds of pieces the
// question is one of bin packing: it is decided by first fit, by bounds and by search, and the answer is
// `unknown` if a bounded amount of work (a fraction of a second) does not settle it, or there are more than
// 512 different demands. An answer other than `unknown` is always right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/constraint/budget.hpp"

namespace resourced::feasibility {

/// Equal nodes.
struct NodeKind {
  std::uint64_t count = 0;
  std::uint64_t cores = 0;
  std::uint64_t gpus = 0;
};

/// So many nodes, all different and each no other demand's node, with so many cores and gpus each. What is
/// left of such a node may hold pieces, unless the whole of it is taken.
struct NodeDemand {
  std::uint64_t count = 0;
  std::uint64_t cores = 0;
  std::uint64_t gpus = 0;
  bool whole = false;
};

/// So many pieces, each of which gets its cores and gpus in one node; a node may hold many.
struct PieceDemand {
  std::uint64_t count = 0;
  std::uint64_t cores = 0;
  std::uint64_t gpus = 0;
};

struct Demand {
  std::vector<NodeDemand> nodes;
  /// None is without cores and gpus.
  std::vector<PieceDemand> pieces;
};

struct Packing {
  enum class Answer { fits, does_not_fit, unknown };

  Answer answer = Answer::fits;
  /// Where node demands alone do not fit: some of them (indices) that together need more nodes than there are
  /// for them, and how many there are.
  std::vector<std::size_t> rivals;
  std::uint64_t nodes_for_rivals = 0;
};

/// Amounts of a demand may be max_amount, which nothing that is packed can satisfy.
[[nodiscard]] Packing pack(const std::vector<NodeKind>& kinds, const Demand& demand);
/// The same within a budget.
[[nodiscard]] Packing pack(const std::vector<NodeKind>& kinds, const Demand& demand,
                           constraint::Budget& budget);

[[nodiscard]] constexpr bool holds(const NodeKind& kind, const NodeDemand& demand) {
  return kind.cores >= demand.cores && kind.gpus >= demand.gpus;
}

/// How many pieces one node of this kind holds, when it holds nothing else.
[[nodiscard]] std::uint64_t pieces_in(const NodeKind& kind, const PieceDemand& piece);

/// How many pieces all nodes together hold, when they hold nothing else; at most max_amount.
[[nodiscard]] std::uint64_t pieces_in(const std::vector<NodeKind>& kinds, const PieceDemand& piece);

/// How many nodes satisfy a demand.
[[nodiscard]] std::uint64_t nodes_for(const std::vector<NodeKind>& kinds, const NodeDemand& demand);

// Gives every node demand its nodes at the least loss: a transportation problem between kinds of nodes and
// demands, solved exactly by successive shortest paths.

struct NodeAssignment {
  /// Nodes of kind g that go to demand d: nodes[g][d].
  std::vector<std::vector<std::uint64_t>> nodes;
  /// The sum of what the nodes that are given away lose.
  std::uint64_t loss = 0;
  /// Where there is no assignment: demands that together need more nodes than there are for any of them.
  std::vector<std::size_t> rivals;
};

/// What one node loses when it goes to a demand: loss[g][d], read only where the kind holds the demand.
using LossTable = std::vector<std::vector<std::uint64_t>>;

/// Nothing if it would take more work than is reasonable. Requires that a node loses at most 2^40, and all
/// nodes together at most max_amount.
[[nodiscard]] std::optional<NodeAssignment> assign_nodes(const std::vector<NodeKind>& kinds,
                                                         const std::vector<NodeDemand>& demands,
                                                         const LossTable& loss, constraint::Budget& budget);

/// How many pieces fewer a node holds when it goes to a demand.
[[nodiscard]] LossTable lost_pieces(const std::vector<NodeKind>& kinds,
                                    const std::vector<NodeDemand>& demands, const PieceDemand& piece);

}  // namespace resourced::feasibility

// Gives every node demand its nodes at the least loss: a transportation problem between kinds of nodes and
// demands, solved exactly by successive shortest paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/feasibility/packing.hpp"

namespace resourced {

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
                                                         const LossTable& loss, Budget& budget);

/// How many pieces fewer a node holds when it goes to a demand.
[[nodiscard]] LossTable lost_pieces(const std::vector<NodeKind>& kinds,
                                    const std::vector<NodeDemand>& demands, const PieceDemand& piece);

}  // namespace resourced

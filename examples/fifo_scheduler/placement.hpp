// Which node serves which part of a request. core/feasibility/packing.hpp says whether a request fits; here
// is asked again after each node, so that no node is used in a way that leaves the rest without a place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/feasibility/packing.hpp"

namespace resourced::fifo {

/// The share of one node in an allocation.
struct Share {
  /// An index into the nodes.
  std::size_t node = 0;
  std::uint64_t cores = 0;
  std::uint64_t gpus = 0;
  /// All that the node has.
  bool whole = false;
};

/// Places all that is wanted on these nodes, the first ones first; each entry is one node. Nothing if it does
/// not fit, or if packing.hpp cannot tell.
[[nodiscard]] std::optional<std::vector<Share>> place(const std::vector<feasibility::NodeKind>& nodes,
                                                      feasibility::Demand wanted);

}  // namespace resourced::fifo

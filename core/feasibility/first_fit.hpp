// A quick try to pack several kinds of pieces: demands for nodes take the nodes that matter least for one
// kind of piece, then the kinds of pieces go in one after the other, each into the nodes where it leaves
// least.
#pragma once

#include <vector>

#include "core/feasibility/packing.hpp"

namespace resourced {

/// True only when all of it has found a place. False says nothing.
[[nodiscard]] bool first_fit(const std::vector<NodeKind>& kinds, const Demand& demand, Budget& budget);

}  // namespace resourced

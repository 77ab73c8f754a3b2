// Packs several kinds of pieces into nodes, beside demands for nodes of their own. This is bin packing with
// two resources, so the work is bounded: first fit in a few orders may show that it goes, weighted totals
// that it does not, and what is between the two is searched, one way of filling a node after the other.
#pragma once

#include <vector>

#include "core/feasibility/packing.hpp"

namespace resourced {

/// `unknown` only when the bounds are reached. Requires what pack() has made sure of: amounts below
/// max_amount, every demand for itself can be met.
[[nodiscard]] Packing::Answer search_for_packing(const std::vector<NodeKind>& kinds, const Demand& demand,
                                                 Budget& budget);

}  // namespace resourced

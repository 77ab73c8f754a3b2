// The ways to fill one node: which demand for a node of its own it serves, if any, and how many pieces of
// each kind lie beside that.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/feasibility/packing.hpp"

namespace resourced {

/// How much of each part of a demand one node serves: first the node demands (one at most), then the pieces.
using Filling = std::vector<std::uint64_t>;

/// Of each kind of node every filling to which nothing can be added that is still wanted. Nothing if they are
/// too many.
[[nodiscard]] std::optional<std::vector<std::vector<Filling>>> list_fillings(
    const std::vector<NodeKind>& kinds, const Demand& demand, Budget& budget);

}  // namespace resourced

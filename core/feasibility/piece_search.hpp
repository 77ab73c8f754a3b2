// The search for a packing, with its two parts: first fit, and the ways to fill a node.
//
// Packs several kinds of pieces into nodes, beside demands for nodes of their own. This is bin packing with
// two resources, so the work is bounded: first fit in a few orders may show that the demand fits, weighted
// totals that it does not. Otherwise the ways to fill a node are searched one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/feasibility/packing.hpp"

namespace resourced::feasibility {

/// `unknown` only when the bounds are reached. Requires, as pack() ensures, amounts below max_amount, and
/// that each demand alone can be met.
[[nodiscard]] Packing::Answer search_for_packing(const std::vector<NodeKind>& kinds, const Demand& demand,
                                                 constraint::Budget& budget);

// A quick try to pack several kinds of pieces: demands for nodes take the nodes that matter least for one
// kind of piece, then the kinds of pieces are placed one after the other, each in the nodes where it leaves
// least.

/// True if all of the demand is placed. False does not mean that it cannot be met.
[[nodiscard]] bool first_fit(const std::vector<NodeKind>& kinds, const Demand& demand,
                             constraint::Budget& budget);

// The ways to fill one node: which demand for a node of its own it serves, if any, and how many pieces of
// each kind lie beside that.

/// How much of each part of a demand one node serves: first the node demands (one at most), then the pieces.
using Filling = std::vector<std::uint64_t>;

/// For each kind of node every filling to which nothing wanted can be added. Nothing if there are too many.
[[nodiscard]] std::optional<std::vector<std::vector<Filling>>> list_fillings(
    const std::vector<NodeKind>& kinds, const Demand& demand, constraint::Budget& budget);

}  // namespace resourced::feasibility

// Searches for a packing, with first fit and with the ways to fill a node.
//
// The search packs several kinds of pieces into nodes, beside demands for nodes of their own. This is bin
// packing with two resources, so the work is bounded: first fit in a few orders may show that the demand
// fits, weighted totals that it does not. Otherwise the ways to fill a node are searched one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/feasibility/packing.hpp"

namespace resourced::feasibility {

/// Decides whether the demand fits; the answer is `unknown` only when the bounds are reached. Requires, as
/// pack() ensures, amounts below max_amount, and that each demand alone can be met.
[[nodiscard]] Packing::Answer search_for_packing(const std::vector<NodeKind>& kinds, const Demand& demand,
                                                 constraint::Budget& budget);

// First fit is a quick attempt to pack several kinds of pieces: demands for nodes take the nodes that matter
// least for one kind of piece, then the kinds of pieces are placed one after the other, each in the nodes
// where it leaves least.

/// Returns true if all of the demand is placed. False does not mean that it cannot be met.
[[nodiscard]] bool first_fit(const std::vector<NodeKind>& kinds, const Demand& demand,
                             constraint::Budget& budget);

// A filling is a way to fill one node: the demand for a node that it serves, if any, and the number of pieces
// of each kind beside that.

/// The amount of each part of a demand that one node serves: first the node demands (one at most), then the
/// pieces.
using Filling = std::vector<std::uint64_t>;

/// Returns, for each kind of node, every filling to which nothing wanted can be added. Returns nothing if
/// there are too many.
[[nodiscard]] std::optional<std::vector<std::vector<Filling>>> list_fillings(
    const std::vector<NodeKind>& kinds, const Demand& demand, constraint::Budget& budget);

}  // namespace resourced::feasibility

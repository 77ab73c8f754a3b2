// The algebra of resource sets: union, difference, intersection, selection and renumbering. The members that
// belong to no rank (scheduling, attributes, unknown keys, times) come from the first operand; append and
// intersect take those that it lacks from the second. nslots belongs to a whole allocation: it is kept by a
// renumbering, and by a selection of all ranks.
#pragma once

#include <functional>
#include <string_view>

#include "core/rset/resource_set.hpp"

#pragma GCC visibility push(default)
namespace resourced::rset {

/// Returns the union of two sets. Throws Error EINVAL when a core or gpu of a rank is in both, or a rank has
/// different hosts.
[[nodiscard]] ResourceSet append(const ResourceSet& a, const ResourceSet& b);

/// Returns the resources in a that are not in b, rank by rank, without ranks that have none left. Throws
/// Error EINVAL when a rank has different hosts.
[[nodiscard]] ResourceSet diff(const ResourceSet& a, const ResourceSet& b);

/// Returns the resources in both sets, rank by rank; a rank has the properties that either set gives it.
/// Throws Error EINVAL when a rank has different hosts.
[[nodiscard]] ResourceSet intersect(const ResourceSet& a, const ResourceSet& b);

/// Select the targets that parse_targets() reads, or all others. Both throw as it does.
[[nodiscard]] ResourceSet include(const ResourceSet& set, std::string_view targets);
[[nodiscard]] ResourceSet exclude(const ResourceSet& set, std::string_view targets);

/// Returns the ranks with all properties of a comma-separated list, and without those written as `^name`.
/// Throws Error EINVAL for an empty name.
[[nodiscard]] text::IdSet ranks_with_properties(const ResourceSet& set, std::string_view names);

/// Returns the properties that `set` gives to ranks and `before` does not, by name.
[[nodiscard]] ResourceSet::Properties new_properties(const ResourceSet& set, const ResourceSet& before);

/// Renumbers the ranks from 0 in their order.
[[nodiscard]] ResourceSet remap(const ResourceSet& set);

/// Renumbers the cores of each rank from 0 in their order, as in a topology without other cores.
[[nodiscard]] ResourceSet renumber_cores(const ResourceSet& set);

/// Renumbers the ranks from 0 in the order of these hosts; ranks that share a host keep their order. Throws
/// Error EINVAL that names a host that is unknown, missing, or given too often.
[[nodiscard]] ResourceSet rerank(const ResourceSet& set, const text::Hostlist& hosts);

/// Adds a property from `NAME[:RANKS]`; without RANKS to every rank. Throws Error EINVAL.
void set_property(ResourceSet& set, std::string_view text);

/// Calls f(ranks, group of a or null, group of b or null) for each combination that some rank has. The cost
/// follows the runs of ranks in both sets.
void for_each_pair(
    const ResourceSet& a, const ResourceSet& b,
    const std::function<void(const text::IdSet& ranks, const ResourceGroup* a, const ResourceGroup* b)>& f);

}  // namespace resourced::rset
#pragma GCC visibility pop

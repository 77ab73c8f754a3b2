// Two resource sets side by side: which ranks have which group of one and which group of the other.
#pragma once

#include <functional>

#include "core/rset/resource_set.hpp"

namespace resourced::rset {

/// Calls f(ranks, group of a or null, group of b or null) for each combination that some rank has. The cost
/// follows the runs of ranks in both sets.
void for_each_pair(
    const ResourceSet& a, const ResourceSet& b,
    const std::function<void(const text::IdSet& ranks, const ResourceGroup* a, const ResourceGroup* b)>& f);

}  // namespace resourced::rset

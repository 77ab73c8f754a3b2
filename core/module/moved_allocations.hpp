// Resources of allocations whose targets have other ranks than before.
#pragma once

#include <functional>
#include <optional>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::module {

/// Returns the same resources on the ranks that their targets have in another set. Targets without one are
/// left out.
[[nodiscard]] rset::ResourceSet in_other_ranks(
    const rset::ResourceSet& resources, const rset::ResourceSet& to,
    const std::function<std::optional<text::IdSet::Id>(text::IdSet::Id)>& new_rank);

}  // namespace resourced::module

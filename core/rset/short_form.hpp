// The short text form of resources that commands and drain reasons show: `rank[0-1]/core[0-3],gpu0
// rank2/core0`.
#pragma once

#include <string>

#include "core/rset/resource_set.hpp"

namespace resourced::rset {

/// Returns the short form of the resources of a rank: `core[0-3],gpu0`.
[[nodiscard]] std::string short_form(const text::IdSet& cores, const text::IdSet& gpus);
/// Returns one word for each group, in the order of the groups; "" for an empty set.
[[nodiscard]] std::string short_form(const std::vector<ResourceGroup>& groups);
[[nodiscard]] inline std::string short_form(const ResourceSet& set) { return short_form(set.groups()); }

}  // namespace resourced::rset

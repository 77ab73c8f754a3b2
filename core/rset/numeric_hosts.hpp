// Hosts whose names are numbers: for them a number that a person writes is ambiguous, a rank or a host.
#pragma once

#include <map>
#include <string>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::rset {

/// Returns hosts whose name is a number, by that number without leading zeros (3 for `0003`), except those
/// whose rank is the same number.
[[nodiscard]] std::map<text::IdSet::Id, std::string> hosts_by_number(const ResourceSet& set);

/// Refuses ranks that are also the numbers of other hosts. Throws Error EINVAL that tells how to name either
/// (`rank:3`, `host:0003`).
void refuse_numbers_of_hosts(const text::IdSet& ranks, const ResourceSet& set);

}  // namespace resourced::rset

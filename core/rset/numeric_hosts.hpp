// Hosts whose names are numbers, where a person may mean either a rank or a host by a number.
#pragma once

#include <map>
#include <string>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::rset {

/// Hosts by the number that is their name, leading zeros aside (`0003` and `3`), without those that have just
/// this rank.
[[nodiscard]] std::map<text::IdSet::Id, std::string> hosts_by_number(const ResourceSet& set);

/// Throws Error EINVAL if some of these ranks are also the numbers of other hosts: the error tells how to say
/// which are meant (`rank:3`, `host:0003`).
void refuse_numbers_of_hosts(const text::IdSet& ranks, const ResourceSet& set);

}  // namespace resourced::rset

// Look-ups of targets that a configuration may name although the inventory does not have them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::config {

/// Targets that a configuration may name although the inventory does not have them: nodes that left for good
/// or did not report, where the inventory is what node agents told.
struct Absent {
  bool any_host = false;
  std::unordered_set<std::string> hosts;
  bool any_rank = false;
  IdSet ranks;
};

/// Upper bound of the hosts that one key names, and of those that all [[resource.config]] entries name
/// together.
inline constexpr std::size_t max_named_hosts = std::size_t{1} << 22;
/// Throws Error EINVAL for more than max_named_hosts. Hosts that may be absent are looked up one by one, so
/// the length of the text does not bound the time.
void check_host_count(const Hostlist& hosts);

/// Every rank of these hosts, without absent ones. Throws as check_host_count() and ranks_of_hosts() do.
[[nodiscard]] IdSet present_ranks(const Hostlist& hosts, const ResourceSet& resources, const Absent& absent);

/// Targets of an inventory as parse_targets() reads them, less those that are absent.
[[nodiscard]] IdSet parse_present_targets(std::string_view text, const ResourceSet& resources,
                                          const Absent& absent);

}  // namespace resourced::config

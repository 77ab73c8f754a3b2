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

/// The most hosts that one key may name, and all [[resource.config]] entries together.
inline constexpr std::size_t max_named_hosts = std::size_t{1} << 22;
/// Throws Error EINVAL for more: hosts that the inventory need not have are looked at one by one.
void check_host_count(const Hostlist& hosts);

/// Every rank of these hosts, less those that are absent. Throws as
/// check_host_count() and ranks_of_hosts() do.
[[nodiscard]] IdSet present_ranks(const Hostlist& hosts, const ResourceSet& resources, const Absent& absent);

/// Targets of an inventory as parse_targets() reads them, less those that are absent.
[[nodiscard]] IdSet parse_present_targets(std::string_view text, const ResourceSet& resources,
                                          const Absent& absent);

}  // namespace resourced::config

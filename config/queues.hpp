// Queues of the configuration, and look-ups of configured hosts.
//
// Queues (RFC 33), as far as they concern resources: `queues.NAME.hosts` gives its hosts the property
// `+NAME`. The other keys of a queue are for the parts of Flux that handle jobs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "config/document.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::config {

// Look-ups of configured targets, which the inventory may lack.

/// Targets that a configuration may name although the inventory lacks them: nodes that left for good, or did
/// not report to the discovery of the inventory.
struct Absent {
  bool any_host = false;
  std::unordered_set<std::string> hosts;
  bool any_rank = false;
  text::IdSet ranks;
};

/// Maximum number of hosts that one key names, and of those that all [[resource.config]] entries name
/// together.
inline constexpr std::size_t max_named_hosts = std::size_t{1} << 22;
/// Checks hosts. Throws Error EINVAL for more than max_named_hosts, and as text::check_node_names() does.
/// Hosts that may be absent are looked up one by one, so the length of the text does not bound the time.
void check_hosts(const text::Hostlist& hosts);

/// Returns every rank of these hosts, without absent ones. Throws as check_hosts() and ranks_of_hosts() do.
[[nodiscard]] text::IdSet present_ranks(const text::Hostlist& hosts, const rset::ResourceSet& resources,
                                        const Absent& absent);

/// Returns targets of an inventory as parse_targets() reads them, without absent ones.
[[nodiscard]] text::IdSet parse_present_targets(std::string_view text, const rset::ResourceSet& resources,
                                                const Absent& absent);

struct Config;

/// Value of `hosts` of a queue that means every host of the inventory (RFC 33).
inline constexpr std::string_view every_host = "all";

/// A queue of the configuration (queues.NAME) with `hosts`.
struct Queue {
  std::string name;
  std::string hosts;  ///< a hostlist (RFC 29) that is not empty, or `all`

  /// The queue's membership property (RFC 33, Queue Membership and Resource Properties).
  [[nodiscard]] std::string property() const { return '+' + name; }
  friend bool operator==(const Queue&, const Queue&) = default;
};

/// Reads the queues, in the order of their names. Throws Error EINVAL that names file, line and key for
/// `hosts` that is empty, no hostlist, or beside `requires` or `parent`, for a name that is no valid property
/// (RFC 20), and for a virtual queue (one with `parent`) that RFC 33 rejects.
[[nodiscard]] std::vector<Queue> read_queues(const Document& document);

/// Gives the hosts of each queue its membership property. Throws Error EINVAL that names file, line and key
/// for a host that is neither among the resources nor absent; they are unchanged then.
void add_queue_properties(const Config& config, rset::ResourceSet& resources, const Absent& absent = {});

}  // namespace resourced::config

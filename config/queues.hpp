// Queues (RFC 33), as far as they concern resources: `queues.NAME.hosts` gives its hosts the property
// `+NAME`. Everything else about a queue is for the parts of Flux that handle jobs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/absent.hpp"
#include "config/document.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::config {

struct Config;

/// As `hosts` of a queue: every host of the inventory (RFC 33).
inline constexpr std::string_view every_host = "all";

/// One queues.NAME that has `hosts`.
struct Queue {
  std::string name;
  std::string hosts;  ///< a hostlist (RFC 29) that is not empty, or `all`

  /// The queue's membership property (RFC 33, Queue Membership and Resource Properties).
  [[nodiscard]] std::string property() const { return '+' + name; }
  friend bool operator==(const Queue&, const Queue&) = default;
};

/// In the order of their names. Throws Error EINVAL that names file, line and key for `hosts` that is no
/// hostlist or empty or stands beside `requires` or `parent`, and for a name that makes no property (RFC 20).
[[nodiscard]] std::vector<Queue> read_queues(const Document& document);

/// Gives the hosts of each queue its membership property. Throws Error EINVAL that names file, line and key
/// for a host that is neither among the resources nor absent; they are unchanged then.
void add_queue_properties(const Config& config, ResourceSet& resources, const Absent& absent = {});

}  // namespace resourced::config

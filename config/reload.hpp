// The plan of a reload: the changes that take effect while the daemon runs, or an error that refuses all of
// them and names the setting that cannot change. Pure: both configurations have been read before.
#pragma once

#include <cstddef>
#include <optional>

#include "config/config.hpp"
#include "config/inventory.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::config {

/// Only what differs is set.
struct ReloadPlan {
  std::optional<IdSet> exclude;  ///< the new set of excluded targets
  ResourceSet::Properties property_add;
  ResourceSet::Properties property_remove;
  std::optional<std::size_t> journal_max;
  std::optional<double> history;  ///< seconds
  std::optional<LogLevel> log_level;
  bool parent = false;  ///< the enclosing instance is elsewhere, or followed in another way

  [[nodiscard]] bool empty() const noexcept;
};

/// Live are: exclude, properties, journal-max, history, the log level, access, the limits on requests, the
/// times of monitoring, and where and how a parent is followed. Everything else (hosts, cores, gpus,
/// scheduling, endpoints and their limits, the store's directory, partitions, verification) must be equal in
/// effect. Throws Error EINVAL "FILE:LINE: KEY: ..." for the first difference that is not live. Pass an empty
/// Inventory for a configuration without one.
[[nodiscard]] ReloadPlan plan_reload(const Config& now, const Inventory& now_inventory, const Config& next,
                                     const Inventory& next_inventory);

}  // namespace resourced::config

// The plan of a reload: the changes that take effect while the daemon runs, or an error that refuses all of
// them and names the setting that cannot change. Planning has no effects: both configurations have been read
// before.
#pragma once

#include "config/config.hpp"
#include "config/inventory.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::config {

/// The changes that a caller cannot read from the new configuration alone. Other live settings take effect
/// with their values there.
struct ReloadPlan {
  rset::ResourceSet::Properties property_add;
  rset::ResourceSet::Properties property_remove;
  bool parent = false;  ///< the endpoint of the enclosing instance, or how it is followed, has changed
};

/// Checks changed settings. Throws Error EINVAL "FILE:LINE: KEY: ..." for the first one that needs a restart.
void check_settings(const Config& now, const Config& next);

/// Plans a reload. The table of settings defines which settings may change (Change). Hosts, cores, gpus and
/// scheduling of the inventory must be equal, and both or neither must have a parent. Throws Error EINVAL
/// "FILE:LINE: KEY: ..." for the first difference that needs a restart. Pass an empty Inventory for a
/// configuration without one.
[[nodiscard]] ReloadPlan plan_reload(const Config& now, const Inventory& now_inventory, const Config& next,
                                     const Inventory& next_inventory);

}  // namespace resourced::config

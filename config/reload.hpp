// The plan of a reload: the changes that take effect while the daemon runs, or an error that refuses all of
// them and names the setting that cannot change. Pure: both configurations have been read before.
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
  bool parent = false;  ///< the enclosing instance is elsewhere, or followed in another way
};

/// Throws Error EINVAL "FILE:LINE: KEY: ..." for the first setting that needs a restart.
void check_settings(const Config& now, const Config& next);

/// The table of settings says which may change (Change). Hosts, cores, gpus and scheduling of the inventory
/// must be equal, and both or neither must have a parent. Throws Error EINVAL "FILE:LINE: KEY: ..." for the
/// first difference that needs a restart. Pass an empty Inventory for a configuration without one.
[[nodiscard]] ReloadPlan plan_reload(const Config& now, const Inventory& now_inventory, const Config& next,
                                     const Inventory& next_inventory);

}  // namespace resourced::config

// Digests of what the configuration files of all daemons of a cluster should have in common. They compare
// meaning and not text: comments, the order of keys and the division into files do not matter.
#pragma once

#include "config/config.hpp"
#include "config/inventory.hpp"
#include "core/cluster/files.hpp"

namespace resourced::daemon::log::etcd {

/// `inventory`: the configured R. `exclude`: the excluded targets. `partitions`: [[acquire.partition]] and
/// queues with hosts. `monitor`: [monitor], and what [resource] says of agents and their inventory. `access`:
/// [access], as it is written: the users that a name stands for may have other uids on another host. Settings
/// that have their defaults count as not written, so that versions agree of which one knows more settings.
///
/// `inventory` is the configured one, with or without exclusions and queues; empty if agents report it.
[[nodiscard]] ::resourced::cluster::FileDigests file_digests(const config::Config& config,
                                                             const config::Inventory& inventory);

}  // namespace resourced::daemon::log::etcd

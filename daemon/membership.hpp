// Makes a daemon a member of a cluster, and takes a store out of its cluster.
#pragma once

#include <string>

#include "config/config.hpp"
#include "core/cluster/member.hpp"
#include "daemon/commands.hpp"

namespace resourced::daemon {

/// Returns what this daemon, as a member, tells the others, and how it keeps their log.
[[nodiscard]] ::resourced::cluster::Settings member_settings(const Options& options,
                                                             const config::Config& config);

/// Begins a cluster with the events of the store. Throws Error if etcd has another cluster already, or does
/// not answer.
void begin_cluster(const Options& options);

/// Marks the store of this directory as one of no cluster, for a daemon on its own that has locked the store,
/// before its first event. Throws Error.
void leave_cluster(const std::string& directory);

}  // namespace resourced::daemon

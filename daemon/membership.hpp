// How a daemon becomes a member of a cluster, and how its store leaves one.
#pragma once

#include <string>

#include "config/config.hpp"
#include "core/cluster/member.hpp"
#include "daemon/server.hpp"

namespace resourced::daemon {

/// What the member that this daemon is tells the others, and how it keeps their log.
[[nodiscard]] ::resourced::cluster::Settings member_settings(const Options& options,
                                                             const config::Config& config);

/// Begins a cluster with the events of the store. Throws Error if etcd has another cluster already, or does
/// not answer.
void begin_cluster(const Options& options);

/// For a daemon on its own, once it has the store of this directory, and before its first event: the store
/// belongs to no cluster any more. Throws Error.
void leave_cluster(const std::string& directory);

}  // namespace resourced::daemon

// Ends the lease of a member that cannot serve.
#pragma once

#include "config/config.hpp"
#include "daemon/log/etcd/coordinator.hpp"

namespace resourced::daemon::log::etcd {

/// Ends the lease of a member that has no coordinator any more, so that another one leads at once. Logs the
/// reason if it cannot within a second; then the lease ends by itself.
void resign(const config::Cluster& settings, Member& member);

}  // namespace resourced::daemon::log::etcd

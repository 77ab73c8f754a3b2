// The end of a lease whose member cannot serve.
#pragma once

#include "config/config.hpp"
#include "daemon/log/etcd/coordinator.hpp"

namespace resourced::daemon::log::etcd {

/// For a member that has no coordinator any more: ends its lease, so that another one leads at once. Logs why
/// if it cannot within a second; then the lease ends by itself.
void resign(const config::Cluster& settings, Member& member);

}  // namespace resourced::daemon::log::etcd

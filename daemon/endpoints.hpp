// Where the daemon listens, and that it does not stand open to a network by mistake.
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "daemon/options.hpp"
#include "proto/uri.hpp"

namespace resourced::daemon {

/// The endpoints of the command line, else those of the configuration, else the default ones. Throws Error
/// EINVAL for one that is none, EACCES for a tcp endpoint beyond loopback that has neither CURVE nor the
/// site's word that this is meant (`bus.insecure`).
[[nodiscard]] std::vector<proto::Endpoint> endpoints(const Options& options, const config::Bus& bus);

}  // namespace resourced::daemon

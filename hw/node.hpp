// A node as the daemon is told of it: its name and its R (RFC 20).
#pragma once

#include <string>

#include "core/rset/resource_set.hpp"
#include "hw/probe.hpp"

namespace resourced::hw {

/// The name that the system gives this host. Throws Error.
[[nodiscard]] std::string local_hostname();

/// One target, rank 0, on this host: the daemon knows which rank the host is. Throws Error EINVAL for a name
/// that no host can have (RFC 29), and for hardware without a core.
[[nodiscard]] ResourceSet node_resources(const std::string& hostname, const Hardware& hardware);

}  // namespace resourced::hw

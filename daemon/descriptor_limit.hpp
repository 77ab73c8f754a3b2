// How many descriptors the process may have open. The usual 1024 are meant for programs that use select(2).
// A daemon that runs out of them is worse off than one that is slow: libzmq 4.3.4 aborts the process when it
// cannot accept a connection on a Unix socket for want of one, and any local user could make it.
#pragma once

#include <cstddef>

namespace resourced::daemon {

/// Raises the soft limit to the hard one, as far as the system lets it. Returns what it is then.
std::size_t raise_descriptor_limit() noexcept;

}  // namespace resourced::daemon

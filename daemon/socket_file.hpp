// The file of a Unix socket: a daemon that was killed leaves it behind, one that lives answers on it.
#pragma once

#include <string>

namespace resourced::daemon {

enum class SocketFile { none, stale, in_use };

/// What is at this path. Anything but a socket counts as none: binding to it says what is wrong.
[[nodiscard]] SocketFile look_at_socket(const std::string& path);

}  // namespace resourced::daemon

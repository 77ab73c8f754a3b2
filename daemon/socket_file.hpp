// The file of a Unix socket: a daemon that was killed leaves it behind, one that lives answers on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace resourced::daemon {

enum class SocketFile { none, stale, in_use };

/// What is at this path. Anything but a socket counts as none: binding to it says what is wrong.
[[nodiscard]] SocketFile look_at_socket(const std::string& path);

/// Who may connect to a socket.
struct SocketMode {
  std::uint32_t mode = 0666;
  /// A gid; the group of the daemon if there is none.
  std::optional<std::uint32_t> group;
};

/// Gives a socket its group and mode. Throws Error that names it.
void set_socket_mode(const std::string& path, const SocketMode& mode);

}  // namespace resourced::daemon

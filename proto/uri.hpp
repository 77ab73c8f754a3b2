// The addresses that a daemon listens on and a client connects to: ipc://PATH and tcp://HOST:PORT for ZeroMQ,
// local://PATH for a Unix stream socket. Text only: nothing is looked up or opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace resourced::proto {

enum class Scheme : std::uint8_t { ipc, tcp, local };

/// The use of an address: only a listener may leave the host (`*`) and the port (`*` or 0) open.
enum class EndpointUse : std::uint8_t { listen, connect };

/// The longest path that a Unix socket address (sockaddr_un) holds with its terminating NUL.
inline constexpr std::size_t max_socket_path = 107;

struct Endpoint {
  Scheme scheme = Scheme::ipc;
  /// ipc and local: the path, without empty and "." components. tcp: empty.
  std::string path;
  /// tcp: name, IPv4 address, IPv6 address without brackets, or "*". Otherwise empty.
  std::string host;
  /// tcp: 0 stands for any free port. Otherwise 0.
  std::uint16_t port = 0;

  /// The canonical form, as ZeroMQ takes those of ipc and tcp.
  [[nodiscard]] std::string uri() const;

  bool operator==(const Endpoint&) const = default;
};

/// Error EINVAL that quotes the text and says what is wrong with it; ENAMETOOLONG for a path that is too
/// long.
[[nodiscard]] Endpoint parse_endpoint(std::string_view uri, EndpointUse use);

/// The parts of several URIs that are separated by commas. A comma before anything but a scheme is part of a
/// path.
[[nodiscard]] std::vector<std::string> split_uris(std::string_view uris);

// Where a daemon and its clients meet, and where the daemon keeps its state, when no option says so. The
// environment and the file system come in as functions, so that the choice can be tested.

/// The value of an environment variable; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// Whether something holds for the file at a path.
using FileTest = std::function<bool(const std::string& path)>;

// A directory that is empty or not absolute counts as not set, as the XDG base directory specification
// demands. Of several, separated by colons, as systemd sets them, the first counts.

/// The daemon's sockets: $RUNTIME_DIRECTORY, else $XDG_RUNTIME_DIR/resourced, else /run/resourced.
[[nodiscard]] std::string runtime_directory(const Environment& environment);
/// ipc://DIR/bus of runtime_directory().
[[nodiscard]] std::string default_bus_uri(const Environment& environment);
/// local://DIR/local of runtime_directory().
[[nodiscard]] std::string default_local_uri(const Environment& environment);

/// Where a client connects: $RESOURCED_URI as it is, else the first socket that this user may connect to in
/// $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/resourced and /run/resourced, in each the bus before the Unix socket
/// `local`. The bus admits the daemon's own user and a configured group, so others get the Unix socket. If
/// there is no such socket, the first that exists, so that the error names it; if there is none,
/// default_bus_uri(). So a user's own daemon comes before the system's, and a login session (which has
/// $XDG_RUNTIME_DIR) still finds the latter.
[[nodiscard]] std::string client_uri(const Environment& environment, const FileTest& exists,
                                     const FileTest& may_connect);

/// The daemon's state: $STATE_DIRECTORY, else $XDG_STATE_HOME/resourced, else $HOME/.local/state/resourced.
/// Error EINVAL that names the variables if none is set.
[[nodiscard]] std::string state_directory(const Environment& environment);

}  // namespace resourced::proto

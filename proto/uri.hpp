// Parses the addresses that a daemon listens on and a client connects to: ipc://PATH and tcp://HOST:PORT for
// ZeroMQ, local://PATH for a Unix stream socket. This is text only: nothing is looked up or opened.
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

/// Maximum length of a path in a Unix socket address (sockaddr_un), beside its terminating NUL.
inline constexpr std::size_t max_socket_path = 107;

struct Endpoint {
  Scheme scheme = Scheme::ipc;
  /// The path of ipc and local, without empty and "." components; empty for tcp.
  std::string path;
  /// The host of tcp: name, IPv4 address, IPv6 address without brackets, or "*"; otherwise empty.
  std::string host;
  /// The port of tcp, where 0 stands for any free port; otherwise 0.
  std::uint16_t port = 0;

  /// Returns the canonical form, which ZeroMQ accepts for ipc and tcp.
  [[nodiscard]] std::string uri() const;

  bool operator==(const Endpoint&) const = default;
};

/// Parses an address. Error EINVAL that quotes the text and says what is wrong with it; ENAMETOOLONG for a
/// path that is too long.
[[nodiscard]] Endpoint parse_endpoint(std::string_view uri, EndpointUse use);

/// Splits URIs at commas. A comma before anything but a scheme is part of a path.
[[nodiscard]] std::vector<std::string> split_uris(std::string_view uris);

// Default addresses and directories of a daemon and its clients. The environment and the file system are
// passed as functions, so that the choice can be tested.

/// Returns the value of an environment variable; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// A test of the file at a path.
using FileTest = std::function<bool(const std::string& path)>;

// A directory in a variable counts as not set if it is empty or not absolute, as the XDG base directory
// specification demands. systemd separates several by colons: the first counts.

/// Returns the directory of the daemon's sockets: $RUNTIME_DIRECTORY, else $XDG_RUNTIME_DIR/resourced, else
/// /run/resourced.
[[nodiscard]] std::string runtime_directory(const Environment& environment);
/// Returns ipc://DIR/bus of runtime_directory().
[[nodiscard]] std::string default_bus_uri(const Environment& environment);
/// Returns local://DIR/local of runtime_directory().
[[nodiscard]] std::string default_local_uri(const Environment& environment);

/// Returns the address that a client connects to: $RESOURCED_URI as it is, else the first socket that this
/// user may connect to in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/resourced and /run/resourced, in each the bus
/// before the Unix socket `local`. The bus admits the daemon's own user and a configured group, so others get
/// the Unix socket. If there is no such socket, the first that exists, so that the error names it; if there
/// is none, default_bus_uri(). So a user's own daemon comes before the system's, and a login session (which
/// has $XDG_RUNTIME_DIR) still finds the latter.
[[nodiscard]] std::string client_uri(const Environment& environment, const FileTest& exists,
                                     const FileTest& may_connect);

/// Returns the directory of the daemon's state: $STATE_DIRECTORY, else $XDG_STATE_HOME/resourced, else
/// $HOME/.local/state/resourced. Error EINVAL that names the variables if none is set.
[[nodiscard]] std::string state_directory(const Environment& environment);

}  // namespace resourced::proto

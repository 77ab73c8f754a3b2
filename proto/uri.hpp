// The addresses that a daemon listens on and a client connects to: ipc://PATH and tcp://HOST:PORT for ZeroMQ,
// local://PATH for a Unix stream socket. Text only: nothing is looked up or opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace resourced::proto

// An address of the HTTP server: the socket that listens there, and the identity of connections to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

#include "daemon/transport/transport.hpp"

namespace resourced::daemon::http {

/// An address to listen on.
struct HttpEndpoint {
  std::string path;     ///< path of a Unix socket; "" for TCP
  std::string address;  ///< numeric, or "*" for all of IPv4 and IPv6
  std::uint16_t port = 0;

  [[nodiscard]] bool is_local() const noexcept { return !path.empty(); }
  /// Returns `http://127.0.0.1:7480`, `https://[::1]:7480` or `unix:///run/resourced/http`.
  [[nodiscard]] std::string uri(bool has_tls) const;
};

using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

/// Binds a socket, and stores the chosen port if any is allowed. A Unix socket without a listener is
/// replaced. Throws Error that names the address.
void listen_at(Acceptor& acceptor, HttpEndpoint& place);

/// The other end of a connection.
struct Origin {
  transport::Credentials credentials;
  /// The name for limits: `uid 1000`, `loopback`, `address 10.0.0.1` or `address 2001:db8::/64`.
  std::string name;
  /// The address of this server that it has connected to; "" for a Unix socket.
  std::string own_address;
};

/// Returns the origin of a connection; nothing if that has ended already.
[[nodiscard]] std::optional<Origin> origin_of(boost::asio::generic::stream_protocol::socket& socket,
                                              const HttpEndpoint& place);

}  // namespace resourced::daemon::http

// An address of the HTTP server: the socket that listens there, and the identity of connections to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

#include "daemon/transport/transport.hpp"

namespace resourced::daemon::http {

/// Where to listen.
struct HttpEndpoint {
  std::string path;     ///< of a Unix socket; "" for TCP
  std::string address;  ///< numeric
  std::uint16_t port = 0;

  [[nodiscard]] bool is_local() const noexcept { return !path.empty(); }
  /// `http://127.0.0.1:7480`, `https://[::1]:7480`, `unix:///run/resourced/http`.
  [[nodiscard]] std::string uri(bool has_tls) const;
};

using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

/// Binds a socket, and sets the port if any is meant. A Unix socket without a listener is replaced. Throws
/// Error that names the address.
void listen_at(Acceptor& acceptor, HttpEndpoint& place);

/// The other end of a connection.
struct Origin {
  transport::Credentials credentials;
  /// `uid 1000`, `loopback`, `address 10.0.0.1` or `address 2001:db8::/64`: the name for limits.
  std::string name;
  /// The address that it has connected to; "" for a Unix socket.
  std::string own_address;
};

/// Nothing if the connection has ended already.
[[nodiscard]] std::optional<Origin> origin_of(boost::asio::generic::stream_protocol::socket& socket,
                                              const HttpEndpoint& place);

}  // namespace resourced::daemon::http

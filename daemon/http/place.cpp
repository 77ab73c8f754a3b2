#include "daemon/http/place.hpp"

#include <algorithm>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "core/error.hpp"
#include "daemon/transport/socket_file.hpp"

namespace resourced::daemon::http {
namespace {

namespace asio = boost::asio;
using asio::generic::stream_protocol;

asio::ip::tcp::endpoint tcp_of(const stream_protocol::endpoint& endpoint) {
  asio::ip::tcp::endpoint tcp;
  std::copy_n(static_cast<const char*>(static_cast<const void*>(endpoint.data())),
              std::min(endpoint.size(), tcp.capacity()), static_cast<char*>(static_cast<void*>(tcp.data())));
  return tcp;
}

// Returns an address without mapping: a socket for both families reports addresses of IPv4 as mapped into
// IPv6.
asio::ip::address plain_address_of(const stream_protocol::endpoint& endpoint) {
  asio::ip::address address = tcp_of(endpoint).address();
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

// Returns the name of a peer for limits. Every user of this machine can use any loopback address, and a host
// on a network any of its /64.
std::string name_of(const asio::ip::address& address) {
  if (address.is_loopback()) return "loopback";
  if (address.is_v4()) return "address " + address.to_string();
  asio::ip::address_v6::bytes_type bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + bytes.size() / 2, bytes.end(), static_cast<unsigned char>(0));
  return fmt::format("address {}/64", asio::ip::address_v6(bytes).to_string());
}

}  // namespace

std::string HttpEndpoint::uri(bool has_tls) const {
  if (is_local()) return "unix://" + path;
  const bool is_six = address.find(':') != std::string::npos;
  return fmt::format("{}://{}:{}", has_tls ? "https" : "http", is_six ? "[" + address + "]" : address, port);
}

void listen_at(Acceptor& acceptor, HttpEndpoint& place) {
  boost::system::error_code error;
  stream_protocol::endpoint address;
  // "*" means all addresses of both families, or of IPv4 if the kernel lacks IPv6.
  const bool is_any = place.address == "*";
  if (place.is_local()) {
    transport::clear_socket(place.path, place.uri(false));
    address = asio::local::stream_protocol::endpoint(place.path);
  } else if (is_any) {
    address = asio::ip::tcp::endpoint(asio::ip::tcp::v6(), place.port);
  } else {
    address = asio::ip::tcp::endpoint(asio::ip::make_address(place.address), place.port);
  }
  acceptor.open(address.protocol(), error);
  if (is_any && error == asio::error::address_family_not_supported) {
    address = asio::ip::tcp::endpoint(asio::ip::tcp::v4(), place.port);
    acceptor.open(address.protocol(), error);
  }
  if (error)
    throw Error(error.value(), fmt::format("cannot listen on {}: {}", place.uri(false), error.message()));
  // Report an aborted connection, as in the local transport, so that the next one is accepted.
  acceptor.set_option(asio::socket_base::enable_connection_aborted(true));
  if (!place.is_local()) acceptor.set_option(asio::socket_base::reuse_address(true));
  if (is_any && address.protocol().family() == AF_INET6) acceptor.set_option(asio::ip::v6_only(false));
  // Bound the send buffer, which connections inherit: otherwise the kernel keeps megabytes for each client
  // that does not read.
  constexpr int most_in_kernel = 128 << 10;
  acceptor.set_option(asio::socket_base::send_buffer_size(most_in_kernel));
  acceptor.bind(address, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    throw Error(error.value(), fmt::format("cannot listen on {}: {}", place.uri(false), error.message()));
  if (!place.is_local()) place.port = tcp_of(acceptor.local_endpoint()).port();
}

std::optional<Origin> origin_of(stream_protocol::socket& socket, const HttpEndpoint& place) {
  Origin origin;
  if (place.is_local()) {
    if (const auto process = transport::peer_process(socket.native_handle())) {
      origin.credentials.userid = process->userid;
      origin.credentials.groupid = process->groupid;
    }
    origin.name = fmt::format("uid {}", origin.credentials.userid);
    return origin;
  }
  boost::system::error_code error;
  const auto remote = socket.remote_endpoint(error);
  if (error) return std::nullopt;
  const auto local = socket.local_endpoint(error);
  if (error) return std::nullopt;
  const asio::ip::address address = plain_address_of(remote);
  origin.credentials.address = address.to_string();
  origin.credentials.reads_by_loopback = address.is_loopback();
  origin.name = name_of(address);
  origin.own_address = plain_address_of(local).to_string();
  // Turn the delay of small segments off: a response is written as a whole, so there is nothing to wait for.
  const int yes = 1;
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return origin;
}

}  // namespace resourced::daemon::http

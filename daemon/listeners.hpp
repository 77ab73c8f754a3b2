// The listening sockets, including those of HTTP: one transport for each endpoint, with one budget of
// connections for all.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <zmq.hpp>

#include "config/config.hpp"
#include "daemon/http/http_transport.hpp"
#include "daemon/http/site.hpp"
#include "daemon/service/service.hpp"
#include "daemon/transport/connection_count.hpp"
#include "daemon/transport/local_transport.hpp"
#include "daemon/transport/transport.hpp"
#include "daemon/transport/zap.hpp"
#include "daemon/transport/zmq_transport.hpp"
#include "proto/uri.hpp"

namespace resourced::daemon {

class Listeners {
 public:
  /// Prepares the transports without listening. Throws Error for a key file that cannot be used. `service`
  /// must outlive this object.
  Listeners(boost::asio::io_context& loop, service::Service& service, const config::Config& config);

  /// Listens on the endpoints and for HTTP. Throws Error for an address that cannot be used.
  void listen(const std::vector<proto::Endpoint>& endpoints, const config::Config& config);
  /// Serves HTTP under these conditions from now on. Connections without tokens or TLS end where these are
  /// required from now on.
  void set_site(http::Site site);
  [[nodiscard]] transport::ClientIds& ids() noexcept { return ids_; }
  /// Returns the addresses that clients connect to.
  [[nodiscard]] std::vector<std::string> addresses() const;

  /// Throws transport::socket_is_gone() for the first address whose Unix socket is gone.
  void check_reachable() const;

  /// Ends connections whose key is not known yet, after a key was revoked (Transport::drop_silent).
  void drop_silent();
  void stop_reading();
  void end_writing();
  /// Lets the destructor not wait for clients that read slowly.
  void abandon();
  /// The number of bytes that are not sent yet, and of clients that have not closed their connection yet.
  [[nodiscard]] std::size_t unsent() const;
  [[nodiscard]] std::size_t unclosed() const;
  /// Whether at least `crowd` connections, and at least half of all, have ended
  /// (ConnectionCount::has_emptied).
  [[nodiscard]] bool have_emptied(std::size_t crowd) { return connections_->has_emptied(crowd); }

 private:
  void listen(const proto::Endpoint& endpoint, const config::Config& config);
  void listen(const config::HttpAddress& address, const config::Config& config);
  /// Logs once for each address that no client can connect to it any more.
  void watch_sockets();
  [[nodiscard]] transport::ZmqOptions zmq_options(const config::Config& config) const;
  [[nodiscard]] transport::LocalOptions local_options(const config::Config& config) const;

  boost::asio::io_context& loop_;
  service::Service& service_;
  const std::shared_ptr<transport::ConnectionCount> connections_;
  zmq::context_t context_;
  transport::ClientIds ids_;
  transport::ZapHandler zap_;
  std::optional<transport::CurveServer> curve_;
  http::Site site_;
  /// Budgets of HTTP, one for TCP and one for Unix sockets: clients on TCP cannot use up the connections of
  /// others.
  std::shared_ptr<transport::ConnectionCount> tcp_http_connections_;
  std::shared_ptr<transport::ConnectionCount> local_http_connections_;
  std::vector<std::unique_ptr<transport::Transport>> transports_;
  /// The transports of `transports_` that serve HTTP.
  std::vector<http::HttpServer*> http_servers_;
  boost::asio::steady_timer socket_timer_;
  std::set<std::string> lost_;
};

/// Keeps the loop running for pending responses until clients have received them or stop reading.
class ResponseFlush {
 public:
  /// `waiting` returns the number of responses that are queued for clients outside of the listeners.
  ResponseFlush(boost::asio::io_context& loop, Listeners& listeners, std::function<std::size_t()> waiting)
      : loop_(loop), listeners_(listeners), waiting_(std::move(waiting)), timer_(loop) {}

  /// Ends the loop once clients have received their responses and closed their connections, or when the
  /// remaining clients have accepted no data for a while. ZeroMQ sends its own queue while its context ends
  /// (linger). Both together take at most 2 s. A second call does nothing.
  void begin();

 private:
  using Clock = boost::asio::steady_timer::clock_type;

  void watch(std::size_t unsent_before, Clock::time_point since);

  boost::asio::io_context& loop_;
  Listeners& listeners_;
  std::function<std::size_t()> waiting_;
  boost::asio::steady_timer timer_;
  /// The time at which the loop ends at the latest; set by begin().
  std::optional<Clock::time_point> end_;
};

}  // namespace resourced::daemon

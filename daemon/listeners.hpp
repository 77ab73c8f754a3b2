// The sockets that clients come in by: one transport for each endpoint, with one budget of connections for
// all.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <zmq.hpp>

#include "config/config.hpp"
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
  /// Nothing is listened on yet. Throws Error for a key file that cannot be used. `service` must outlive
  /// this.
  Listeners(boost::asio::io_context& loop, service::Service& service, const config::Config& config);

  /// Throws Error for an address that cannot be used.
  void listen(const proto::Endpoint& endpoint, const config::Config& config);
  /// The addresses that clients connect to.
  [[nodiscard]] std::vector<std::string> addresses() const;

  /// A public key was revoked: ends the connections whose holder is not known yet (Transport::drop_silent).
  void drop_silent();
  void stop_reading();
  void end_writing();
  /// The bytes that would be lost now, and the clients that have not closed their connection yet.
  [[nodiscard]] std::size_t unsent() const;
  [[nodiscard]] std::size_t unclosed() const;
  /// Whether so many connections were open and have ended, since the last call
  /// (ConnectionCount::has_emptied).
  [[nodiscard]] bool have_emptied(std::size_t crowd) { return connections_->has_emptied(crowd); }

 private:
  [[nodiscard]] transport::ZmqOptions zmq_options(const config::Config& config) const;
  [[nodiscard]] transport::LocalOptions local_options(const config::Config& config) const;

  boost::asio::io_context& loop_;
  service::Service& service_;
  const std::shared_ptr<transport::ConnectionCount> connections_;
  zmq::context_t context_;
  transport::ClientIds ids_;
  transport::ZapHandler zap_;
  std::optional<transport::CurveServer> curve_;
  std::vector<std::unique_ptr<transport::Transport>> transports_;
};

}  // namespace resourced::daemon

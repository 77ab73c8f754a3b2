#include "daemon/listeners.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "daemon/http/http_transport.hpp"
#include "daemon/peers/tokens.hpp"
#include "daemon/process.hpp"
#include "daemon/settings.hpp"
#include "daemon/transport/socket_file.hpp"
#include "os/log.hpp"

namespace resourced::daemon {
namespace {

/// The time that clients may take for their last answers before the loop ends.
constexpr std::chrono::seconds longest_flush{1};

// Makes the budget of connections over all endpoints, so that neither one peer nor all peers can use up the
// file descriptors (libzmq aborts without one), and other peers cannot keep the owner out.
std::shared_ptr<transport::ConnectionCount> connection_budget(const config::Limits& limits) {
  const std::size_t files = raise_descriptor_limit();
  transport::ConnectionCount::Limits budget;
  budget.per_peer = std::min(limits.connections_per_uid, files / 4);
  budget.of_others = files / 2;
  budget.owners = {"uid 0", fmt::format("uid {}", geteuid())};
  if (limits.connections_per_uid > budget.per_peer) {
    os::log_warning("limits.connections-per-uid is reduced to {}: the process may open {} files",
                    budget.per_peer, files);
  }
  return std::make_shared<transport::ConnectionCount>(std::move(budget));
}

void make_folder_of(const std::string& socket) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(socket).parent_path(), ignored);
}

// Makes the budget of HTTP: a page holds a connection for its events, so one address may not take all of
// them.
std::shared_ptr<transport::ConnectionCount> http_budget(const config::Http& http) {
  constexpr std::size_t least = 16;
  transport::ConnectionCount::Limits budget;
  budget.per_peer = std::max(http.connections / 4, least);
  budget.of_others = http.connections;
  budget.owners = {"uid 0", fmt::format("uid {}", geteuid())};
  return std::make_shared<transport::ConnectionCount>(std::move(budget));
}

}  // namespace

Listeners::Listeners(boost::asio::io_context& loop, service::Service& service, const config::Config& config)
    : loop_(loop),
      service_(service),
      connections_(connection_budget(config.limits)),
      zap_(
          loop_, context_, [this](std::string_view key) { return service_.knows_key(key); },
          [this](const std::string& why) { service_.on_refused(why); }),
      site_(http_site(config.http)),
      tcp_http_connections_(http_budget(config.http)),
      local_http_connections_(http_budget(config.http)),
      socket_timer_(loop) {
  if (!config.bus.curve_key_file.empty())
    curve_ = transport::load_curve_server(config.bus.curve_key_file, zap_);
}

void Listeners::listen(const std::vector<proto::Endpoint>& endpoints, const config::Config& config) {
  for (const proto::Endpoint& endpoint : endpoints) listen(endpoint, config);
  for (const std::string& text : config.http.listen) listen(config::parse_http_address(text), config);
  watch_sockets();
}

void Listeners::listen(const config::HttpAddress& address, const config::Config& config) {
  if (!address.path.empty()) make_folder_of(address.path);
  http::HttpOptions options;
  options.patience.request = config.limits.handshake_timeout;
  options.connections = connections_;
  options.http_connections = address.path.empty() ? tcp_http_connections_ : local_http_connections_;
  options.welcomes = [this](const transport::Credentials& credentials) {
    return service_.may_read(credentials);
  };
  options.requests_per_second = [this] { return service_.limits().requests_per_second; };
  options.holds = &service_.holds();
  const transport::PrivateSockets until_modes_are_set;
  auto server = http::make_http_transport(loop_, {address.path, address.address, address.port}, options,
                                          site_, ids_, service_);
  http_servers_.push_back(server.get());
  transports_.push_back(std::move(server));
  if (!address.path.empty())
    transport::set_socket_mode(address.path, {config.bus.socket_mode, config.bus.socket_group});
}

void Listeners::listen(const proto::Endpoint& endpoint, const config::Config& config) {
  if (!endpoint.path.empty()) make_folder_of(endpoint.path);
  const transport::SocketMode mode{config.bus.socket_mode, config.bus.socket_group};
  const transport::PrivateSockets until_modes_are_set;
  if (endpoint.scheme == proto::Scheme::local) {
    transports_.push_back(
        transport::make_local_transport(loop_, endpoint.path, local_options(config), ids_, service_));
  } else {
    transports_.push_back(
        transport::make_zmq_transport(loop_, context_, endpoint.uri(), zmq_options(config), ids_, service_));
  }
  if (endpoint.scheme == proto::Scheme::local) transport::set_socket_mode(endpoint.path, mode);
  if (endpoint.scheme == proto::Scheme::ipc)
    transport::set_socket_mode(endpoint.path, transport::bus_socket_mode(mode));
}

transport::ZmqOptions Listeners::zmq_options(const config::Config& config) const {
  const config::Bus& bus = config.bus;
  return {bus.send_hwm,           bus.receive_hwm,
          bus.heartbeat_interval, bus.heartbeat_timeout,
          bus.max_message_size,   config.limits.handshake_timeout,
          connections_,           curve_,
          &service_.holds()};
}

transport::LocalOptions Listeners::local_options(const config::Config& config) const {
  transport::LocalOptions options;
  options.max_message_size = config.bus.max_message_size;
  options.owner = geteuid();
  options.frame_timeout = config.limits.handshake_timeout;
  options.connections = connections_;
  options.welcomes = [this](const transport::Credentials& credentials) {
    return service_.welcomes(credentials);
  };
  options.holds = &service_.holds();
  return options;
}

std::vector<std::string> Listeners::addresses() const {
  std::vector<std::string> addresses;
  for (const auto& transport : transports_) addresses.push_back(transport->endpoint());
  return addresses;
}

void Listeners::set_site(http::Site site) {
  const bool is_stricter = (site.needs_token && !site_.needs_token) || (site.tls && !site_.tls);
  site_ = std::move(site);
  if (!is_stricter) return;
  for (http::HttpServer* server : http_servers_) server->end_connections();
}

void Listeners::drop_silent() {
  for (const auto& transport : transports_) transport->drop_silent();
}

void Listeners::check_reachable() const {
  for (const auto& each : transports_) {
    if (!each->is_reachable()) throw transport::socket_is_gone(each->endpoint());
  }
}

void Listeners::watch_sockets() {
  constexpr std::chrono::seconds between{5};
  for (const auto& each : transports_) {
    if (!each->is_reachable() && lost_.insert(each->endpoint()).second)
      os::log_error("{}", transport::socket_is_gone(each->endpoint()).what());
  }
  socket_timer_.expires_after(between);
  socket_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) watch_sockets();
  });
}

void Listeners::stop_reading() {
  socket_timer_.cancel();
  for (const auto& transport : transports_) transport->stop_reading();
}

void Listeners::end_writing() {
  for (const auto& transport : transports_) transport->end_writing();
}

void Listeners::abandon() {
  for (const auto& transport : transports_) transport->abandon();
}

std::size_t Listeners::unsent() const {
  std::size_t bytes = 0;
  for (const auto& transport : transports_) bytes += transport->unsent();
  return bytes;
}

std::size_t Listeners::unclosed() const {
  std::size_t clients = 0;
  for (const auto& transport : transports_) clients += transport->unclosed();
  return clients;
}

void ResponseFlush::begin() {
  if (end_) return;
  end_ = Clock::now() + longest_flush;
  listeners_.end_writing();
  watch(0, Clock::now());
}

void ResponseFlush::watch(std::size_t unsent_before, Clock::time_point since) {
  constexpr std::chrono::milliseconds pause{2};
  constexpr std::chrono::milliseconds to_read{400};
  constexpr std::chrono::milliseconds to_close{250};
  const std::size_t unsent = waiting_() + listeners_.unsent();
  const auto now = Clock::now();
  if (unsent != unsent_before) since = now;
  const bool is_late = now >= *end_ || now - since >= (unsent > 0 ? to_read : to_close);
  if (is_late || (unsent == 0 && listeners_.unclosed() == 0)) return loop_.stop();
  timer_.expires_after(pause);
  timer_.async_wait([this, unsent, since](const boost::system::error_code& error) {
    if (!error) watch(unsent, since);
  });
}

}  // namespace resourced::daemon

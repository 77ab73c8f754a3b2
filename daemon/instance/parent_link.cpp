#include "daemon/instance/parent_link.hpp"

#include <chrono>
#include <utility>

#include "core/error.hpp"
#include "proto/uri.hpp"

namespace resourced::daemon::instance {
namespace {

namespace asio = boost::asio;

client::ConnectionOptions connection_options(const config::Config& config) {
  client::ConnectionOptions options;
  options.key_file = config.resource.parent_key_file;
  // Do not linger: the parent detects the end of the connection.
  options.linger = client::Milliseconds(0);
  options.heartbeat_interval = config.bus.heartbeat_interval;
  options.heartbeat_timeout = config.bus.heartbeat_timeout;
  options.retry_first = client::Milliseconds(100);
  options.retry_most = client::Milliseconds(5000);
  options.max_message_size = config.bus.max_message_size;
  // Bound the work for the parent's messages, as the daemon has clients of its own.
  options.most_steps = 4;
  return options;
}

}  // namespace

void check_parent(const config::Config& config) {
  if (proto::split_uris(config.resource.parent_uri).size() > 1) {
    throw config.fault("resource.parent-uri",
                       "several URIs: name one daemon of the cluster, as each tells what its log has");
  }
  config.checked("resource.parent-uri", [&] {
    (void)proto::parse_endpoint(config.resource.parent_uri, proto::EndpointUse::connect);
  });
}

std::unique_ptr<client::Connection> connect_parent(const config::Config& config) {
  check_parent(config);
  return config.checked("resource.parent-key-file", [&] {
    return std::make_unique<client::Connection>(config.resource.parent_uri, connection_options(config));
  });
}

ParentLink::ParentLink(asio::io_context& loop, nodes::ParentMirror mirror, std::function<SteadyTime()> uptime,
                       ParentFollower::Tell tell)
    : mirror_(std::move(mirror)),
      uptime_(std::move(uptime)),
      tell_(std::move(tell)),
      loop_(loop),
      timer_(loop) {}

ParentLink::~ParentLink() { leave(); }

void ParentLink::follow(std::unique_ptr<client::Connection> connection) {
  leave();
  connection_ = std::move(connection);
  session_ = std::make_shared<const bool>(true);
  follower_.emplace(*connection_, mirror_, uptime_(), tell_);
  input_.emplace(loop_, connection_->fd(), [this] {
    follower_->process(uptime_());
    arm();
  });
  arm();
}

void ParentLink::ignore() {
  leave();
  // Synchronize with an empty history, which has no host down.
  const SteadyTime now = uptime_();
  mirror_.begin();
  mirror_.synced(now);
  if (const auto change = mirror_.take(now)) tell_(*change);
}

void ParentLink::leave() {
  session_.reset();
  timer_.cancel();
  input_.reset();
  follower_.reset();
  connection_.reset();
}

void ParentLink::arm() {
  const auto deadline = follower_->next_deadline();
  if (!deadline) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(asio::steady_timer::time_point(os::timer_duration(deadline->time_since_epoch())));
  timer_.async_wait([this, session = std::weak_ptr(session_)](const boost::system::error_code& error) {
    if (error || session.expired()) return;
    follower_->tick(uptime_());
    arm();
  });
}

}  // namespace resourced::daemon::instance

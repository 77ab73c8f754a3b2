// Runs a ParentFollower (parent_follower.hpp) in the daemon's loop, with a connection of the client library
// to the enclosing instance. The parent may be replaced or removed at run time.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "client/connection.hpp"
#include "config/config.hpp"
#include "core/nodes/parent.hpp"
#include "daemon/instance/parent_follower.hpp"
#include "os/loop.hpp"

namespace resourced::daemon::instance {

/// Checks resource.parent-uri. Throws Error that names file, line and key if it is not a valid endpoint.
void check_parent(const config::Config& config);

/// Makes a connection to the configured parent. Nothing is sent yet. Throws Error that names file, line and
/// key for an address or a key file that cannot be used.
[[nodiscard]] std::unique_ptr<client::Connection> connect_parent(const config::Config& config);

class ParentLink {
 public:
  ParentLink(boost::asio::io_context& loop, nodes::ParentMirror mirror, std::function<SteadyTime()> uptime,
             ParentFollower::Tell tell);
  ~ParentLink();
  ParentLink(const ParentLink&) = delete;
  ParentLink& operator=(const ParentLink&) = delete;

  /// Follows the parent at this connection from now on, instead of an earlier one.
  void follow(std::unique_ptr<client::Connection> connection);
  /// Follows no parent: hosts are no longer down because of it, and the last expiration stays.
  void ignore();
  /// Sets the settle time, which takes effect the next time that the parent is synchronized.
  void set_settle(Seconds settle) noexcept { mirror_.set_settle(settle); }

 private:
  void leave();
  void arm();

  nodes::ParentMirror mirror_;
  std::function<SteadyTime()> uptime_;
  ParentFollower::Tell tell_;
  std::unique_ptr<client::Connection> connection_;
  std::optional<ParentFollower> follower_;
  /// A token that lives as long as one connection: a queued timer handler of an earlier one does nothing.
  std::shared_ptr<const bool> session_;
  boost::asio::io_context& loop_;
  std::optional<os::Watch> input_;
  boost::asio::steady_timer timer_;
};

}  // namespace resourced::daemon::instance

// The way to the enclosing instance: a connection of the client library in the daemon's loop, and what it
// takes to follow the journal there (parent_follower.hpp). The parent may come, go and be replaced.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "client/connection.hpp"
#include "config/config.hpp"
#include "core/nodes/parent.hpp"
#include "daemon/parent/parent_follower.hpp"
#include "process/loop.hpp"

namespace resourced::daemon::parent {

/// Throws Error that names file, line and key if the address of a parent cannot be one.
void check_parent(const config::Config& config);

/// A connection to the parent that a configuration names. Nothing is sent yet. Throws Error that names file,
/// line and key for an address or a key file that cannot be used.
[[nodiscard]] std::unique_ptr<client::Connection> connect_parent(const config::Config& config);

class ParentLink {
 public:
  ParentLink(boost::asio::io_context& loop, nodes::ParentMirror mirror, std::function<SteadyTime()> uptime,
             ParentFollower::Tell tell);
  ~ParentLink();
  ParentLink(const ParentLink&) = delete;
  ParentLink& operator=(const ParentLink&) = delete;

  /// Follows the parent behind this connection from now on, in the place of a former one.
  void follow(std::unique_ptr<client::Connection> connection);
  /// Follows nobody: hosts are not down for the parent's sake any more, and the last expiration stays.
  void ignore();
  /// New times hold from the next time on that the parent is found again.
  void set_settle(Seconds settle) noexcept { mirror_.set_settle(settle); }

 private:
  void leave();
  void arm();

  nodes::ParentMirror mirror_;
  std::function<SteadyTime()> uptime_;
  ParentFollower::Tell tell_;
  std::unique_ptr<client::Connection> connection_;
  std::optional<ParentFollower> follower_;
  /// Held while one connection lasts: what the loop has ready for a former one must not happen any more.
  std::shared_ptr<const bool> session_;
  boost::asio::io_context& loop_;
  std::optional<process::Watch> input_;
  boost::asio::steady_timer timer_;
};

}  // namespace resourced::daemon::parent

// A daemon of a cluster while another one leads: its store follows the log in etcd, and it serves the state
// and history that the log has.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/config.hpp"
#include "core/time.hpp"
#include "daemon/log/etcd/coordinator.hpp"
#include "daemon/log/records.hpp"
#include "daemon/server.hpp"

namespace resourced::daemon {

class Standby {
 public:
  /// Opens the store. Throws Error for a configuration that could not be served, and as Store does.
  Standby(const Options& options, config::Config config);
  ~Standby();
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;
  Standby(Standby&&) = delete;
  Standby& operator=(Standby&&) = delete;

  /// Follows until this daemon leads and has the whole log on disk, and returns the member. Returns null
  /// after SIGTERM or SIGINT, or if follows_on(). The store is closed when this object is destroyed. Throws
  /// Error if the store does not fit the cluster, or fails, and for a configuration with which this daemon
  /// could not lead.
  [[nodiscard]] std::unique_ptr<log::etcd::Member> run();
  /// Whether another Standby is to take the place of this one: after restored(), or as this daemon has lost
  /// its lease before it could lead.
  [[nodiscard]] bool follows_on() const noexcept;
  /// The time at which this daemon last knew another one that led; nothing if there was none.
  [[nodiscard]] std::optional<BootTime> leader_seen() const noexcept;
  /// The last event of a snapshot that has come and is to take the place of the store (install_store()).
  [[nodiscard]] std::optional<log::Sequence> restored() const noexcept;
  /// The configuration as of the last SIGHUP.
  [[nodiscard]] const config::Config& configuration() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Follows as Standby does, with a new Standby as long as the last one follows_on(). Updates `config`, and
/// sets `led` to the time at which this daemon last knew a leader.
[[nodiscard]] std::unique_ptr<log::etcd::Member> follow(const Options& options, config::Config& config,
                                                        std::optional<BootTime>& led);

}  // namespace resourced::daemon

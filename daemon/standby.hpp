// A daemon of a cluster while another one leads: it follows the log in etcd with its store, and serves what
// the log tells.
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

  /// Follows until this daemon leads and has the whole log on disk, and returns the member; otherwise until
  /// SIGTERM, SIGINT or follows_on(), and returns null. With `reloads` reads the configuration again first.
  /// The store is closed when this object is destroyed. Throws Error if the store does not fit the cluster,
  /// or fails, and for a configuration with which this daemon could not lead.
  [[nodiscard]] std::unique_ptr<log::etcd::Member> run(bool reloads);
  /// Another Standby is to take the place of this one: after restored(), or as this daemon has lost its lease
  /// before it could lead.
  [[nodiscard]] bool follows_on() const noexcept;
  /// When this daemon last knew another one that led; nothing if there was none.
  [[nodiscard]] std::optional<BootTime> leader_seen() const noexcept;
  /// A snapshot has come that is to take the place of the store (install_store()): its last event.
  [[nodiscard]] std::optional<log::Sequence> restored() const noexcept;
  /// The configuration as of the last SIGHUP.
  [[nodiscard]] const config::Config& configuration() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Follows as Standby does, with a new one as long as the last one follows_on(). Updates `config`, and `led`
/// to when this daemon last knew a leader. With `reloads` reads the configuration again first.
[[nodiscard]] std::unique_ptr<log::etcd::Member> follow(const Options& options, config::Config& config,
                                                        std::optional<BootTime>& led, bool reloads);

}  // namespace resourced::daemon

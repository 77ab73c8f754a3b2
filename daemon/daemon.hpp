// The daemon: one loop with its store, service and listeners, in one of three roles. A daemon in no cluster
// is alone. A member of a cluster begins as a standby, which follows the log of the leader, and leads once it
// is elected, with the state, the store and the connections that it has.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "client/connection.hpp"
#include "config/config.hpp"
#include "config/inventory.hpp"
#include "core/cluster/files.hpp"
#include "daemon/account_watch.hpp"
#include "daemon/commands.hpp"
#include "daemon/follower.hpp"
#include "daemon/instance/host.hpp"
#include "daemon/instance/parent_link.hpp"
#include "daemon/listeners.hpp"
#include "daemon/log/current_log.hpp"
#include "daemon/log/etcd/leader_log.hpp"
#include "daemon/log/store.hpp"
#include "daemon/service/service.hpp"
#include "daemon/upkeep.hpp"
#include "os/loop.hpp"
#include "os/service.hpp"
#include "os/signals.hpp"
#include "proto/uri.hpp"

namespace resourced::daemon {

class Daemon final : private service::Program, private service::Leadership, private Follower::Owner {
 public:
  /// Opens the store and listens. With [cluster] the daemon is a standby; `led` is the time at which the
  /// cluster last had a leader, as far as this process knows. Throws Error if it cannot start.
  Daemon(const Options& options, config::Config config, std::optional<BootTime> led);
  ~Daemon() override;
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  Daemon(Daemon&&) = delete;
  Daemon& operator=(Daemon&&) = delete;

  /// Serves until the process is to end, and returns its exit status, or until another Daemon is to follow
  /// the log in place of this one, and returns nothing. Throws Error if this daemon cannot lead, or its store
  /// does not fit the cluster.
  std::optional<int> run();

  /// The configuration as of the last reload.
  [[nodiscard]] const config::Config& configuration() const noexcept { return config_; }
  /// The time at which the cluster last had a leader, as far as this process knows.
  [[nodiscard]] std::optional<BootTime> led() const;
  /// The last event of a snapshot that is to take the place of the store (log::install_store()).
  [[nodiscard]] std::optional<log::Sequence> restored() const noexcept { return restored_; }

 private:
  [[nodiscard]] bool watches_agents() const { return config_.monitor.mode == config::MonitorMode::agents; }
  [[nodiscard]] bool is_alone() const noexcept { return member_ == nullptr; }
  void start_store();
  void start_following();
  /// Begins to lead as a standby that was elected.
  void lead();
  void on_committed(log::Sequence last);
  /// Called once the events of the start are on disk: a store that cannot be written keeps the daemon from
  /// starting.
  void announce();
  /// Tells systemd that the daemon is ready.
  void tell_ready(const std::string& status);
  [[nodiscard]] std::string status();

  // Functions of service::Program.
  [[nodiscard]] WallTime wall_now() const override;
  [[nodiscard]] SteadyTime steady_now() const override;
  void run_later(Seconds pause, std::function<void()> work) override;
  void wake_at(SteadyTime when) override;
  void reload(const By& by) override;
  void load(const rset::ResourceSet& resources, const std::string& path, bool force, const By& by) override;
  void on_discovered(const rset::ResourceSet& found) override;
  void on_user(std::uint32_t uid) override { accounts_.saw(uid); }

  // Functions of service::Leadership.
  [[nodiscard]] std::string name() const override { return leader_->name(); }
  [[nodiscard]] proto::topics::Term term() const override;
  [[nodiscard]] bool may_serve() const override { return leader_->may_serve(); }
  void ask_roster(TakeRoster take) override { leader_->ask_roster(std::move(take)); }
  [[nodiscard]] std::optional<std::string> stalled() const override { return leader_->stalled(); }
  void keep_holders(const std::vector<module::PartitionHolder>& holders) override;
  void hand_over(const std::string& successor) override;

  // Functions of Follower::Owner.
  void on_event(log::Record record) override;
  void on_caught_up() override;
  void on_standing(const service::Following::Standing& standing) override;
  void on_elected() override;
  void on_ended(const std::string& why) override;
  void on_restored(log::Sequence last) override;
  void on_failed(const Error& error) override;

  // The inventory (daemon_inventory.cpp).
  /// Begins to serve as the daemon that decides: defines the inventory, or waits for it.
  void start_module();
  /// Takes the store of a daemon on its own out of its cluster, before the first event.
  void leave();
  void define(module::DefineMethod method, config::Inventory inventory);
  void log_waiting();
  void enclose(WallTime expiration_set);
  void remember_size(const rset::ResourceSet& resources);
  /// Throws the errors with which a start as the leader would fail.
  void check_start_with(config::Config config) const;
  void reload_standby(config::Config next);
  void reload_module(config::Config next, const By& by);
  /// Lets a new configuration take effect in what all roles have.
  void apply(config::Config next, const peers::Access& rules, http::Site site);

  void take_signal(int number);
  void reload_by_signal();
  /// Ends the loop without answers to clients: the log decides whether their changes were made.
  void depose(const std::string& why);
  /// Commits and answers all decided commands, then ends the streams, then the loop. In a cluster another
  /// member leads next: `successor`, if one is named.
  void stop(std::optional<std::string> successor = std::nullopt);
  void end_store();
  void store_failed(const Error& error);
  /// Stops all inputs that change the state: clients, the parent and timers.
  void take_nothing_in();

  const Options options_;
  config::Config config_;
  const std::string directory_;
  /// The time at which the cluster last had a leader, as far as this process knows.
  std::optional<BootTime> led_;
  /// The error if exclusions or queues of the configuration do not fit its inventory.
  std::optional<Error> fault_;
  config::Inventory inventory_;
  /// The R that was configured at the start, encoded (configured_text).
  std::optional<std::string> replaced_;
  /// Whether the R in force was loaded in place of that one.
  bool loaded_ = false;
  std::uint64_t size_ = 0;
  config::Absent absent_;
  /// Initialized before the store, so that a start with an unusable endpoint leaves no files behind.
  const std::vector<proto::Endpoint> endpoints_;
  std::unique_ptr<client::Connection> parent_connection_;
  boost::asio::io_context loop_{1};
  log::Store store_;
  /// Initialized before anything that starts threads. Threads inherit the blocked signals: one that begins
  /// without them would take a SIGTERM, and die of it with the process.
  os::Signals signals_;
  /// The state after the last event of the log, until the start.
  module::State recorded_;
  /// How long targets that were online stay online without their agents.
  Seconds grace_{};
  /// The member of a cluster; null for a daemon on its own.
  std::unique_ptr<log::etcd::Member> member_;
  /// Set for a standby.
  std::unique_ptr<Follower> follower_;
  /// Set for a leader.
  std::unique_ptr<log::etcd::LeaderLog> leader_;
  log::CurrentLog log_;
  service::Service service_;
  Listeners listeners_;
  /// The host of a Flux instance; null if none may attach.
  std::unique_ptr<instance::Host> host_;
  ResponseFlush flush_;
  std::unique_ptr<instance::ParentLink> parent_;
  std::unique_ptr<Upkeep> upkeep_;
  AccountWatch accounts_;
  boost::asio::steady_timer agent_timer_;
  os::Watchdog watchdog_;
  /// The last event of the start: clients are told where to connect once it is on disk.
  log::Sequence start_ = 0;
  bool announced_ = false;
  /// The last event of a reload on SIGHUP that is not committed yet.
  std::optional<log::Sequence> reload_;
  bool is_ready_ = false;
  bool stopping_ = false;
  /// Whether another Daemon is to follow the log in place of this one.
  bool follows_on_ = false;
  std::optional<log::Sequence> restored_;
  /// Why this daemon cannot serve its role.
  std::optional<Error> failure_;
  int exit_status_ = 0;
};

}  // namespace resourced::daemon

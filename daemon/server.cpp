#include "daemon/server.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <malloc.h>
#include <nlohmann/json.hpp>

#include "client/connection.hpp"
#include "config/config.hpp"
#include "config/inventory.hpp"
#include "config/reload.hpp"
#include "core/engine/engine.hpp"
#include "core/module/partition.hpp"
#include "core/text/hostlist.hpp"
#include "daemon/account_watch.hpp"
#include "daemon/instance/host.hpp"
#include "daemon/instance/parent_link.hpp"
#include "daemon/inventory.hpp"
#include "daemon/listeners.hpp"
#include "daemon/log/etcd/file_digests.hpp"
#include "daemon/log/etcd/identity.hpp"
#include "daemon/log/etcd/leader_log.hpp"
#include "daemon/log/etcd/loop_runtime.hpp"
#include "daemon/log/etcd/resignation.hpp"
#include "daemon/log/store.hpp"
#include "daemon/membership.hpp"
#include "daemon/peers/access.hpp"
#include "daemon/process.hpp"
#include "daemon/service/service.hpp"
#include "daemon/settings.hpp"
#include "daemon/standby.hpp"
#include "daemon/takeover.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "daemon/transport/socket_file.hpp"
#include "daemon/upkeep.hpp"
#include "flux/module/node.hpp"
#include "os/log.hpp"
#include "os/loop.hpp"
#include "os/service.hpp"
#include "os/signals.hpp"
#include "proto/uri.hpp"

namespace resourced::daemon {

using module::DefineMethod;
using ::resourced::cluster::FileDigests;
using rset::ResourceSet;

namespace {

namespace asio = boost::asio;

class Server final : private service::Program, private service::Leadership {
 public:
  /// A member of a cluster that leads.
  struct Leader {
    log::etcd::Member& member;
    /// Whether the member takes over from another leader, whose inventory stays.
    bool takes_over = false;
    /// How long targets that were online in the log stay online without their agents.
    Seconds grace{};
  };
  /// Makes a server of a member that leads, or without `leader` of a daemon on its own.
  Server(const Options& options, config::Config config, std::optional<Leader> leader = std::nullopt)
      : options_(options),
        config_(std::move(config)),
        member_(leader ? &leader->member : nullptr),
        takes_over_(leader && leader->takes_over),
        inventory_(starting_inventory(config_, state_directory(options_, config_), fault_)),
        endpoints_(endpoints(options_, config_.bus)),
        parent_connection_(parent_connection(config_, endpoints_)),
        store_(state_directory(options, config_)),
        signals_(loop_, [this](int number) { take_signal(number); }),
        grace_(leader ? leader->grace : grace_alone()),
        leader_(member_ == nullptr
                    ? nullptr
                    : std::make_unique<log::etcd::LeaderLog>(
                          std::make_unique<log::etcd::LoopRuntime>(loop_, config_.cluster), *member_, store_,
                          [this](std::size_t most, auto take) { store_.copy(most, std::move(take)); })),
        log_(leader_ ? static_cast<log::EventLog&>(*leader_) : store_,
             [this](const log::Record& record) {
               if (host_) host_->copy(record);
             }),
        service_(log_, *this,
                 {.configuration = config::to_json(config_).dump(),
                  .journal_max = config_.resource.journal_max,
                  .access = access(config_),
                  .limits = config_.limits,
                  .agents = agent_settings(config_),
                  .read_topologies = config_.flux.socket.empty() ? nullptr : flux::module::read_topologies,
                  .write_change = write_change,
                  .leadership = leader_ ? this : nullptr}),
        listeners_(loop_, service_, config_),
        flush_(loop_, listeners_, [this] { return service_.unsent(); }),
        upkeep_(loop_, store_, listeners_, service_.holds(), config_.store.history,
                leader_ == nullptr && watches_agents() ? std::optional(os::steady_clock() + grace_)
                                                       : std::nullopt),
        accounts_(
            loop_, config_.access.rules,
            [this](const config::UserGroups& groups) {
              service_.set_access_rules(config_.access.rules, groups);
            },
            [this] { return service_.connected_users(); }),
        agent_timer_(loop_),
        watchdog_(loop_) {
    if (member_ != nullptr) require_all(*member_);
    // Listen before events are recorded, as an address that cannot be used refuses the start. Clients that
    // connect meanwhile are served when the loop runs.
    listeners_.listen(endpoints_, config_);
    if (!config_.flux.socket.empty())
      host_ = std::make_unique<instance::Host>(loop_, service_, listeners_.ids(), config_.flux,
                                               [this] { os::notify_status(status()); });
    start_module();
    // Without an inventory there is no start event whose commit could announce the daemon.
    if (!service_.engine().module().defined()) {
      announced_ = true;
      asio::post(loop_, [this] { announce(); });
    }
  }

  ~Server() override {
    // The store's thread posts to the loop, which must outlive it.
    store_.stop();
  }

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  Server(Server&&) = delete;
  Server& operator=(Server&&) = delete;

  int run() {
    upkeep_.begin();
    loop_.run();
    return exit_status_;
  }

  /// Whether another member leads or is to lead, so that this process goes on as a standby.
  [[nodiscard]] bool is_deposed() const noexcept { return is_deposed_; }
  /// The configuration as of the last reload.
  [[nodiscard]] const config::Config& configuration() const noexcept { return config_; }

 private:
  [[nodiscard]] bool watches_agents() const { return config_.monitor.mode == config::MonitorMode::agents; }

  // Returns the grace (Start::grace) of a daemon on its own.
  [[nodiscard]] Seconds grace_alone() const {
    return grace_at_restart(store_.watched(), os::wall_clock(), config_.cluster.takeover_grace,
                            Upkeep::watch_interval);
  }

  // Throws Error if the store lacks events of the log, as after a full disk.
  void require_all(const log::etcd::Member& member) const {
    if (store_.last_sequence() == member.applied()) return;
    throw Error(EIO, fmt::format("the store has events up to {}, and the log up to {}: see that the disk has "
                                 "room, and start again",
                                 store_.last_sequence(), member.applied()));
  }

  // Takes the store of a daemon on its own out of its cluster, before the first event. Errors of the start
  // come first, as this cannot be undone.
  void leave() {
    const std::string directory = state_directory(options_, config_);
    if (!log::etcd::read_identity(directory)) return;
    if (!host_) (void)check_start(config_, inventory_, recorded_, fault_);
    leave_cluster(directory);
  }

  void start_module() {
    recorded_ = store_.load();
    if (store_.damage()) os::log_error("{}", store_.damage()->what());
    if (member_ != nullptr) member_->tell_files(log::etcd::file_digests(config_, inventory_));
    replaced_ = configured_text(config_, inventory_);
    remember_size(inventory_.resources);
    config::Config start = config_;
    // Discover anew only at the start of a process, not when another leader is taken over from.
    if (takes_over_) start.resource.rediscover = false;
    loaded_ = is_loaded(start, inventory_, recorded_);
    if (!loaded_ && fault_) throw Error(*fault_);
    if (!leader_) leave();
    if (was_loaded(recorded_)) os::log_info("{}", in_force(config_, inventory_, loaded_));
    if (!loaded_ && was_loaded(recorded_)) recorded_.kept_inventory = {};
    absent_ = absent_targets(config_, recorded_);
    store_.start({[this](std::function<void()> answer) {
                    asio::post(loop_, [this, answer = std::move(answer)] {
                      const transport::LoopHold hold(&service_.holds(), "store");
                      answer();
                      service_.on_answered();
                    });
                  },
                  [this](log::Sequence last) { leader_ ? leader_->on_stored(last) : on_committed(last); },
                  [this](const Error& error) { store_failed(error); },
                  [](const Error& error) { os::log_error("cannot trim the history: {}", error.what()); }});
    if (leader_) {
      leader_->start({[this](log::Sequence last) { on_committed(last); },
                      [this](const std::string& why) { depose(why); }});
    }
    if (host_) {
      host_->begin(std::exchange(recorded_, {}));
      start_ = service_.engine().applied();
      return;
    }
    const bool is_named = inventory_.handed_down || config_.resource.has_inventory();
    const bool is_kept = recorded_.kept_inventory.resources && !is_named && !start.resource.rediscover;
    if (loaded_ || is_kept) {
      define(DefineMethod::kvs, discovered_inventory(config_, *recorded_.kept_inventory.resources, absent_));
    } else if (inventory_.handed_down) {
      define(DefineMethod::job_info, std::move(inventory_));
    } else if (config_.resource.has_inventory()) {
      define(DefineMethod::configuration, std::move(inventory_));
    } else {
      discover();
    }
    start_ = service_.engine().applied();
  }

  void on_committed(log::Sequence last) {
    service_.on_committed(last);
    if (host_) host_->on_committed(last);
    if (last >= start_ && !std::exchange(announced_, true)) announce();
  }

  // Functions of service::Program.

  [[nodiscard]] WallTime wall_now() const override { return os::wall_clock(); }
  [[nodiscard]] SteadyTime steady_now() const override { return os::steady_clock(); }
  void run_later(Seconds pause, std::function<void()> work) override {
    os::run_later(loop_, pause, std::move(work));
  }
  void on_user(std::uint32_t uid) override { accounts_.saw(uid); }

  // Functions of service::Leadership.

  [[nodiscard]] std::string name() const override { return leader_->name(); }
  [[nodiscard]] proto::topics::Term term() const override {
    return {static_cast<std::uint64_t>(leader_->epoch()), leader_->cluster()};
  }
  [[nodiscard]] bool may_serve() const override { return leader_->may_serve(); }
  void ask_roster(TakeRoster take) override { leader_->ask_roster(std::move(take)); }
  [[nodiscard]] std::optional<std::string> stalled() const override { return leader_->stalled(); }
  void keep_holders(const std::vector<module::PartitionHolder>& holders) override {
    leader_->keep_holders(holders);
  }

  void hand_over(const std::string& successor) override {
    if (stopping_) return;
    os::log_info("hands over to {}", successor);
    is_deposed_ = true;
    stop(successor);
  }

  // Ends the loop without answers to clients: the log decides whether their changes were made.
  void depose(const std::string& why) {
    os::log_error("does not lead any more: {}", why);
    is_deposed_ = true;
    loop_.stop();
  }

  void define(DefineMethod method, config::Inventory inventory) {
    inventory_ = std::move(inventory);
    remember_size(inventory_.resources);
    module::StartCommand start;
    start.method = method;
    start.inventory = std::make_shared<const ResourceSet>(inventory_.resources);
    start.exclude = inventory_.exclude;
    if (config_.monitor.mode == config::MonitorMode::fixed) start.online = inventory_.resources.ranks();
    if (grace_ > Seconds(0) && watches_agents())
      start.online = online_before(recorded_, inventory_.resources);
    const WallTime expiration_set = expiration_set_at(recorded_, inventory_.resources);
    service_.step(
        engine::Start{std::move(start), std::exchange(recorded_, {}),
                      partition_rules(config_, inventory_.resources, absent_), grace_,
                      leader_ ? leader_->former_holders() : std::vector<module::PartitionHolder>()});
    log_remarks(config_, service_.engine().module().inventory());
    log_waiting();
    if (inventory_.handed_down) enclose(expiration_set);
    service_.on_defined();
  }

  void log_waiting() {
    const engine::Engine& engine = service_.engine();
    const std::string line = waiting_for_hosts(engine.absent(), engine.module().ledger());
    if (!line.empty()) os::log_warning("{}", line);
  }

  void enclose(WallTime expiration_set) {
    service_.step(engine::Enclose{});
    nodes::ParentMirror mirror(*inventory_.handed_down, inventory_.resources, config_.resource.parent_settle,
                               expiration_set);
    parent_ = std::make_unique<instance::ParentLink>(
        loop_, std::move(mirror), os::steady_clock, [this](const nodes::ParentChange& change) {
          service_.take(engine::ParentSays{change}, "enclosing instance");
        });
    if (parent_connection_) parent_->follow(std::move(parent_connection_));
  }

  void discover() {
    service_.discover({config_.resource.size, config_.resource.discovery_timeout}, recorded_hosts(recorded_));
    service_.exclude_from_discovery(config::excluded_hosts(config_));
  }

  void on_discovered(const ResourceSet& found) override {
    try {
      log_discovered(config_, found);
      log_unreported(config_, found);
      define(DefineMethod::dynamic_discovery, discovered_inventory(config_, found, absent_));
    } catch (const Error& error) {
      // The discovered hosts do not fit `exclude` or the partitions. A later agent cannot change that, so the
      // daemon ends.
      os::log_critical("stopping, the discovered inventory is refused: {}", error.what());
      exit_status_ = 1;
      // Posted: the caller is still using the agents, which stop() ends.
      asio::post(loop_, [this] { stop(); });
    }
  }

  void wake_at(SteadyTime when) override {
    if (stopping_) return;
    os::run_at(agent_timer_, when, [this] { service_.on_time(); });
  }

  // Called once the start events are on disk: a store that cannot be written keeps the daemon from starting.
  void announce() {
    // Return memory: reading an inventory leaves up to twice the used heap free.
    malloc_trim(0);
    os::log_info("{}", status());
    // Ignore write errors: the daemon serves even if nobody reads its stdout.
    for (const std::string& address : listeners_.addresses())
      std::fputs(fmt::format("listening on {}\n", address).c_str(), stdout);
    std::fflush(stdout);
    os::notify_ready(status());
  }

  std::string status() {
    if (!service_.engine().module().defined()) {
      return host_ ? "waiting for a Flux instance to attach"
                   : "waiting for node agents to report the inventory";
    }
    const rset::ResourceCounts counts = service_.engine().module().inventory().counts();
    return fmt::format("{}serving {} nodes, {} cores, {} gpus{}",
                       leader_ ? fmt::format("leader of epoch {}, ", leader_->epoch()) : "", counts.nodes,
                       counts.cores, counts.gpus,
                       host_ && !host_->is_attached() ? ", waiting for a Flux instance to attach" : "");
  }

  void take_signal(int number) {
    if (number == SIGHUP && stopping_) return signals_.leave(number);
    if (number == SIGHUP) return reload();
    os::log_info("stopping on signal {}", number);
    if (is_deposed_) os::notify_stopping();
    // A stop during a handover ends the process: it does not go on as a standby.
    if (std::exchange(is_deposed_, false)) return;
    // A second signal ends the loop without waiting for clients.
    if (stopping_) return loop_.stop();
    stop();
  }

  void reload() {
    const transport::LoopHold hold(&service_.holds(), "reload on SIGHUP");
    os::notify_reloading();
    try {
      reload(module::BySignal{"HUP"});
    } catch (const Error& refused) {
      os::log_error("reload refused, the old configuration stays in force: {}", refused.what());
    }
    os::notify_ready(status());
  }

  // The new configuration takes effect as a whole or not at all: the steps that can throw come first.
  void reload(const By& by) override {
    listeners_.check_reachable();
    if (host_ && !host_->is_reachable()) throw transport::socket_is_gone(config_.flux.socket);
    config::Config next = load_configuration(options_);
    config::Inventory inventory = loaded_ ? bare_inventory(next) : configured_inventory(next);
    FileDigests files = member_ != nullptr ? log::etcd::file_digests(next, inventory) : FileDigests();
    const bool waits = loaded_ && configured_text(next, inventory) != replaced_;
    const bool defined = !host_ && service_.engine().module().defined();
    if ((loaded_ || !next.resource.has_inventory()) && defined) {
      inventory = discovered_inventory(next, inventory_.resources, absent_);
    }
    const config::ReloadPlan plan = config::plan_reload(config_, inventory_, next, inventory);
    auto parent = plan.parent ? parent_connection(next, endpoints_) : nullptr;
    const text::Hostlist excluded = config::excluded_hosts(next);
    const peers::Access rules = access(next);
    http::Site site = http_site(next.http);
    if (defined) service_.step(reload_command(next, inventory, plan), by);

    const bool revokes = revokes_keys(config_.access, next.access);
    config_ = std::move(next);
    inventory_ = std::move(inventory);
    if (member_ != nullptr) member_->tell_files(std::move(files));
    service_.set_configuration(config::to_json(config_).dump());
    service_.set_journal_max(config_.resource.journal_max);
    service_.set_limits(config_.limits);
    listeners_.set_site(std::move(site));
    service_.set_access(rules);
    if (revokes) listeners_.drop_silent();
    if (const auto settings = agent_settings(config_)) service_.set_agents(*settings);
    if (plan.parent) {
      parent_->set_settle(config_.resource.parent_settle);
      parent ? parent_->follow(std::move(parent)) : parent_->ignore();
    }
    if (!options_.log_level) set_log_level(config_.log.level);
    upkeep_.set_history(config_.store.history);
    log_passed_over(config_);
    log_remarks(config_, service_.engine().module().inventory());
    os::log_info("configuration reloaded");
    log_returning(service_.engine().module());
    if (waits) {
      os::log_warning("the configured inventory has changed: it replaces the loaded R at the next start");
    }
    service_.exclude_from_discovery(excluded);
  }

  // Replaces the inventory by another R. Changes nothing if the R is refused.
  void load(const ResourceSet& resources, const std::string& path, bool force, const By& by) override {
    if (host_) return host_->load(resources, force, by);
    check_size(resources, config_.resource.size.value_or(size_), path, force);
    config::Inventory next = discovered_inventory(config_, resources, absent_);
    module::LoadCommand command;
    command.inventory = std::make_shared<const ResourceSet>(next.resources);
    command.exclude = next.exclude;
    if (config_.monitor.mode == config::MonitorMode::fixed) command.online = resources.ranks();
    command.replaced = replaced_;
    service_.step(engine::Load{std::move(command), partition_rules(config_, next.resources)}, by);
    inventory_ = std::move(next);
    loaded_ = true;
    remember_size(inventory_.resources);
    os::log_info("loaded {}: it stays in force until the configured inventory changes", path);
    log_waiting();
    os::notify_ready(status());
  }

  // Remembers the highest rank so far: load() refuses an R with higher ranks, as a probable mistake.
  void remember_size(const ResourceSet& resources) {
    if (!resources.empty())
      size_ = std::max<std::uint64_t>(size_, std::uint64_t{resources.ranks().last()} + 1);
  }

  // Commits and answers all decided commands, then ends the streams, then the loop. In a cluster another
  // member leads next: `successor`, if one is named.
  void stop(std::optional<std::string> successor = std::nullopt) {
    if (stopping_) return;
    if (!is_deposed_) os::notify_stopping();
    take_nothing_in();
    if (host_) host_->stop();
    service_.shut_down();
    if (!leader_) return end_store();
    leader_->finish([this] { end_store(); }, std::move(successor));
  }

  void end_store() {
    const engine::Engine& engine = service_.engine();
    store_.stop(engine.has_state() ? &engine.module().state() : nullptr, engine.applied());
    // Posted, so that it runs after the store's last commit or failure.
    asio::post(loop_, [this] { flush_.begin(); });
  }

  void store_failed(const Error& error) {
    os::log_critical("stopping, the store failed: {}", error.what());
    exit_status_ = 1;
    is_deposed_ = false;
    os::notify_stopping();
    // A leader ends without answers: etcd may have a change although its client would be told that it failed.
    if (leader_) return loop_.stop();
    take_nothing_in();
    service_.on_store_failed(error);
    if (host_) host_->stop();
    flush_.begin();
  }

  /// Stops all inputs that change the state: clients, SIGHUP, the parent and timers.
  void take_nothing_in() {
    if (std::exchange(stopping_, true)) return;
    parent_.reset();
    upkeep_.stop();
    agent_timer_.cancel();
    listeners_.stop_reading();
  }

  const Options options_;
  config::Config config_;
  /// The member of a cluster; null for a daemon on its own.
  log::etcd::Member* const member_;
  /// Whether this daemon takes over from another leader of its cluster.
  const bool takes_over_;
  /// The error if exclusions or queues of the configuration do not fit its inventory.
  std::optional<Error> fault_;
  config::Inventory inventory_;
  /// The state after the last event of the log, until the start.
  module::State recorded_;
  /// The R that was configured at the start, encoded (configured_text).
  std::optional<std::string> replaced_;
  /// Whether the R in force was loaded in place of that one.
  bool loaded_ = false;
  std::uint64_t size_ = 0;
  config::Absent absent_;
  /// Initialized before the store, so that a start with an unusable endpoint leaves no files behind.
  const std::vector<proto::Endpoint> endpoints_;
  std::unique_ptr<client::Connection> parent_connection_;
  asio::io_context loop_{1};
  log::Store store_;
  /// Initialized before anything that starts threads. Threads inherit the blocked signals: one that begins
  /// without them would take a SIGTERM, and die of it with the process.
  os::Signals signals_;
  /// How long targets that were online stay online without their agents.
  const Seconds grace_;
  /// The log of a leader; null for a daemon on its own.
  std::unique_ptr<log::etcd::LeaderLog> leader_;
  instance::CopiedLog log_;
  service::Service service_;
  Listeners listeners_;
  /// The host of a Flux instance; null if none may attach.
  std::unique_ptr<instance::Host> host_;
  ResponseFlush flush_;
  std::unique_ptr<instance::ParentLink> parent_;
  Upkeep upkeep_;
  AccountWatch accounts_;
  asio::steady_timer agent_timer_;
  os::Watchdog watchdog_;
  /// The last event of the start: clients are told where to connect once it is on disk.
  log::Sequence start_ = 0;
  bool announced_ = false;
  bool stopping_ = false;
  bool is_deposed_ = false;
  int exit_status_ = 0;
};

// Runs a member of a cluster: it follows as a standby until it leads, and serves until it has lost
// leadership.
int run_member(const Options& options, config::Config config) {
  // The time at which the cluster last had a leader, as far as this process knows.
  std::optional<BootTime> led;
  while (true) {
    const std::unique_ptr<log::etcd::Member> member = follow(options, config, led);
    if (!member) return 0;
    Server::Leader leader{*member, led.has_value()};
    // After a longer time without a leader, the online states in the log say nothing about the present.
    const Seconds grace = config.cluster.takeover_grace;
    if (led && os::boot_clock() - *led <= grace) leader.grace = grace;
    std::unique_ptr<Server> server;
    try {
      server = std::make_unique<Server>(options, config, leader);
    } catch (const Error&) {
      log::etcd::resign(config.cluster, *member);
      throw;
    }
    const int status = server->run();
    led = std::min(os::boot_clock(), member->may_serve_until());
    if (!server->is_deposed()) {
      server.reset();
      // Lets another member lead at once after a failure, as that of the store.
      if (status != 0 && member->leads()) log::etcd::resign(config.cluster, *member);
      return status;
    }
    config = reloaded(server->configuration(), config);
  }
}

}  // namespace

int run(const Options& options) {
  config::Config config = load_configuration(options);
  set_up_logging(options.log_level.value_or(config.log.level));
  log_passed_over(config);
  if (config.cluster.is_set()) return run_member(options, std::move(config));
  return Server(options, std::move(config)).run();
}

}  // namespace resourced::daemon

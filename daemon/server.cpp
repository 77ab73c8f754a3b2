#include "daemon/server.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>
#include <malloc.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "client/connection.hpp"
#include "config/config.hpp"
#include "config/inventory.hpp"
#include "config/reload.hpp"
#include "core/engine/engine.hpp"
#include "core/module/partition.hpp"
#include "core/text/hostlist.hpp"
#include "daemon/instance/host.hpp"
#include "daemon/inventory.hpp"
#include "daemon/listeners.hpp"
#include "daemon/parent/parent_link.hpp"
#include "daemon/peers/access.hpp"
#include "daemon/process.hpp"
#include "daemon/service/service.hpp"
#include "daemon/settings.hpp"
#include "daemon/store/store.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "flux/module/node.hpp"
#include "process/loop.hpp"
#include "process/service.hpp"
#include "proto/uri.hpp"

namespace resourced::daemon {

using module::DefineMethod;
using rset::ResourceSet;

namespace {

namespace asio = boost::asio;

class Server {
 public:
  Server(const Options& options, config::Config config)
      : options_(options),
        config_(std::move(config)),
        inventory_(starting_inventory(config_, state_directory(options_, config_), fault_)),
        endpoints_(endpoints(options_, config_.bus)),
        parent_connection_(parent_connection(config_, endpoints_)),
        store_(state_directory(options, config_)),
        log_(store_,
             [this](const store::Record& record) {
               if (host_) host_->copy(record);
             }),
        service_(log_, process::wall_clock,
                 {config::to_json(config_).dump(), config_.resource.journal_max,
                  peers::Access(config_.access, geteuid()), config_.limits, process::steady_clock,
                  agent_settings(config_), [this](SteadyTime when) { wake_at(when); },
                  [this](const auto& by) { reload(by); },
                  [this](const ResourceSet& resources, const std::string& path, bool force, const auto& by) {
                    load(resources, path, force, by);
                  },
                  [this](Seconds pause, auto work) { process::run_later(loop_, pause, std::move(work)); },
                  config_.flux.socket.empty() ? nullptr : flux::module::read_topologies, write_change}),
        listeners_(loop_, service_, config_),
        flush_(loop_, listeners_, [this] { return service_.unsent(); }),
        signals_(loop_, SIGTERM, SIGINT),
        hang_up_(loop_, SIGHUP),
        trim_timer_(loop_),
        memory_timer_(loop_),
        agent_timer_(loop_),
        watchdog_(loop_) {
    // Listen before events are recorded, as an address that cannot be used refuses the start. Clients that
    // connect meanwhile are served when the loop runs.
    for (const proto::Endpoint& endpoint : endpoints_) listeners_.listen(endpoint, config_);
    if (!config_.flux.socket.empty())
      host_ = std::make_unique<instance::Host>(loop_, service_, listeners_.ids(), config_.flux,
                                               [this] { process::notify_status(status()); });
    start_module();
    // Without an inventory there is no start event to wait for.
    if (!service_.engine().module().defined()) {
      announced_ = true;
      asio::post(loop_, [this] { announce(); });
    }
  }

  ~Server() {
    // The store's thread posts to the loop, which must outlive it.
    store_.stop();
  }

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  Server(Server&&) = delete;
  Server& operator=(Server&&) = delete;

  int run() {
    wait_for_signal();
    wait_for_reload();
    trim_history();
    give_back_memory();
    loop_.run();
    return exit_status_;
  }

 private:
  void start_module() {
    recorded_ = store_.load();
    if (store_.damage()) spdlog::error("{}", store_.damage()->what());
    replaced_ = configured_text(config_, inventory_);
    remember_size(inventory_.resources);
    loaded_ = is_loaded(config_, inventory_, recorded_);
    if (!loaded_ && fault_) throw Error(*fault_);
    if (was_loaded(recorded_)) spdlog::info("{}", in_force(config_, inventory_, loaded_));
    if (!loaded_ && was_loaded(recorded_)) recorded_.inventory = {};
    absent_ = absent_targets(config_, recorded_);
    store_.start({[this](std::function<void()> answer) {
                    asio::post(loop_, [this, answer = std::move(answer)] {
                      const transport::LoopHold hold(&service_.holds(), "store");
                      answer();
                      service_.on_answered();
                    });
                  },
                  [this](store::Sequence last) {
                    service_.on_committed(last);
                    if (host_) host_->on_committed(last);
                    if (last >= start_ && !std::exchange(announced_, true)) announce();
                  },
                  [this](const Error& error) { store_failed(error); },
                  [](const Error& error) { spdlog::error("cannot trim the history: {}", error.what()); }});
    if (host_) {
      host_->begin(std::exchange(recorded_, {}));
      start_ = service_.engine().applied();
      return;
    }
    const bool is_named = inventory_.handed_down || config_.resource.has_inventory();
    const bool is_kept = recorded_.inventory.resources && !is_named && !config_.resource.rediscover;
    if (loaded_ || is_kept) {
      define(DefineMethod::kvs, discovered_inventory(config_, *recorded_.inventory.resources, absent_));
    } else if (inventory_.handed_down) {
      define(DefineMethod::job_info, std::move(inventory_));
    } else if (config_.resource.has_inventory()) {
      define(DefineMethod::configuration, std::move(inventory_));
    } else {
      discover();
    }
    start_ = service_.engine().applied();
  }

  void define(DefineMethod method, config::Inventory inventory) {
    inventory_ = std::move(inventory);
    remember_size(inventory_.resources);
    module::StartCommand start;
    start.method = method;
    start.inventory = std::make_shared<const ResourceSet>(inventory_.resources);
    start.exclude = inventory_.exclude;
    if (config_.monitor.mode == config::MonitorMode::fixed) start.online = inventory_.resources.ranks();
    const WallTime expiration_set = expiration_set_at(recorded_, inventory_.resources);
    start.recorded = std::exchange(recorded_, {});
    service_.step(engine::Start{std::move(start), partition_rules(config_, inventory_.resources, absent_)});
    if (inventory_.handed_down) enclose(expiration_set);
    service_.on_defined();
  }

  void enclose(WallTime expiration_set) {
    service_.step(engine::Enclose{});
    nodes::ParentMirror mirror(*inventory_.handed_down, inventory_.resources, config_.resource.parent_settle,
                               expiration_set);
    parent_ = std::make_unique<parent::ParentLink>(
        loop_, std::move(mirror), process::steady_clock, [this](const nodes::ParentChange& change) {
          service_.take(engine::ParentSays{change}, "enclosing instance");
        });
    if (parent_connection_) parent_->follow(std::move(parent_connection_));
  }

  void discover() {
    nodes::RecordedHosts hosts;
    if (const auto& before = recorded_.inventory.resources) {
      hosts.ranks = before->ranks();
      hosts.hosts = before->nodelist();
    }
    for (const module::TargetName& target : recorded_.shrunk) {
      if (target.ordinal == 0) hosts.gone.insert(target.host);
    }
    service_.discover({config_.resource.size, config_.resource.discovery_timeout}, std::move(hosts),
                      [this](const ResourceSet& found) {
                        try {
                          log_unreported(config_, found);
                          define(DefineMethod::dynamic_discovery,
                                 discovered_inventory(config_, found, absent_));
                        } catch (const Error& error) {
                          // The discovered hosts do not fit `exclude` or the partitions. A later agent cannot
                          // change that, so the daemon ends.
                          spdlog::critical("stopping, the discovered inventory is refused: {}", error.what());
                          exit_status_ = 1;
                          // Posted: the caller is still using the agents, which stop() ends.
                          asio::post(loop_, [this] { stop(); });
                        }
                      });
    service_.exclude_from_discovery(config::excluded_hosts(config_));
  }

  void wake_at(SteadyTime when) {
    if (stopping_) return;
    process::run_at(agent_timer_, when, [this] { service_.on_time(); });
  }

  // Called once the start events are on disk: a store that cannot be written keeps the daemon from starting.
  void announce() {
    // Return memory: reading an inventory leaves up to twice the used heap free.
    malloc_trim(0);
    spdlog::info("{}", status());
    // Ignore write errors: the daemon serves even if nobody reads its stdout.
    for (const std::string& address : listeners_.addresses())
      std::fputs(fmt::format("listening on {}\n", address).c_str(), stdout);
    std::fflush(stdout);
    process::notify_ready(status());
  }

  std::string status() {
    if (!service_.engine().module().defined()) {
      return host_ ? "waiting for a Flux instance to attach"
                   : "waiting for node agents to report the inventory";
    }
    const rset::ResourceCounts counts = service_.engine().module().inventory().counts();
    return fmt::format("serving {} nodes, {} cores, {} gpus{}", counts.nodes, counts.cores, counts.gpus,
                       host_ && !host_->is_attached() ? ", waiting for a Flux instance to attach" : "");
  }

  void wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int number) {
      if (error) return;
      spdlog::info("stopping on signal {}", number);
      // A second signal ends the loop without waiting for clients.
      if (stopping_) return loop_.stop();
      wait_for_signal();
      stop();
    });
  }

  void wait_for_reload() {
    hang_up_.async_wait([this](const boost::system::error_code& error, int /*number*/) {
      if (error || stopping_) return;
      const transport::LoopHold hold(&service_.holds(), "reload on SIGHUP");
      process::notify_reloading();
      try {
        reload(module::BySignal{"HUP"});
      } catch (const Error& refused) {
        spdlog::error("reload refused, the old configuration stays in force: {}", refused.what());
      }
      process::notify_ready(status());
      wait_for_reload();
    });
  }

  // The new configuration takes effect as a whole or not at all: the steps that can throw come first.
  void reload(const std::optional<module::Actor>& by) {
    config::Config next = load_configuration(options_);
    config::Inventory inventory = loaded_ ? bare_inventory(next) : configured_inventory(next);
    const bool waits = loaded_ && configured_text(next, inventory) != replaced_;
    const bool defined = !host_ && service_.engine().module().defined();
    if ((loaded_ || !next.resource.has_inventory()) && defined) {
      inventory = discovered_inventory(next, inventory_.resources, absent_);
    }
    const config::ReloadPlan plan = config::plan_reload(config_, inventory_, next, inventory);
    auto parent = plan.parent ? parent_connection(next, endpoints_) : nullptr;
    const text::Hostlist excluded = config::excluded_hosts(next);
    if (defined) service_.step(reload_command(next, inventory, plan), by);

    const bool revokes = revokes_keys(config_.access, next.access);
    config_ = std::move(next);
    inventory_ = std::move(inventory);
    service_.set_configuration(config::to_json(config_).dump());
    service_.set_journal_max(config_.resource.journal_max);
    service_.set_limits(config_.limits);
    service_.set_access(peers::Access(config_.access, geteuid()));
    if (revokes) listeners_.drop_silent();
    if (const auto settings = agent_settings(config_)) service_.set_agents(*settings);
    if (plan.parent) follow_elsewhere(std::move(parent));
    if (!options_.log_level) set_log_level(config_.log.level);
    trim_history();
    log_passed_over(config_);
    spdlog::info("configuration reloaded");
    log_returning(service_.engine().module());
    if (waits) {
      spdlog::warn("the configured inventory has changed: it replaces the loaded R at the next start");
    }
    service_.exclude_from_discovery(excluded);
  }

  // Replaces the inventory by another R. Changes nothing if the R is refused.
  void load(const ResourceSet& resources, const std::string& path, bool force,
            const std::optional<module::Actor>& by) {
    if (host_) return host_->load(resources, force, by);
    const text::IdSet& ranks = resources.ranks();
    const std::uint64_t size = config_.resource.size.value_or(size_);
    if (ranks.last() >= size) {
      // Flux's error text, with its misspelling.
      if (!force) {
        throw Error(
            EINVAL,
            fmt::format("resource object contains ranks execeeding size={} (override with -f))", size));
      }
      spdlog::warn("{}: has ranks of {} and above, beyond the size of this instance", path, size);
    }
    config::Inventory next = discovered_inventory(config_, resources, absent_);
    module::LoadCommand command;
    command.inventory = std::make_shared<const ResourceSet>(next.resources);
    command.exclude = next.exclude;
    if (config_.monitor.mode == config::MonitorMode::fixed) command.online = ranks;
    command.replaced = replaced_;
    service_.step(engine::Load{std::move(command), partition_rules(config_, next.resources)}, by);
    inventory_ = std::move(next);
    loaded_ = true;
    remember_size(inventory_.resources);
    spdlog::info("loaded {}: it stays in force until the configured inventory changes", path);
    process::notify_ready(status());
  }

  // Remembers the highest rank so far: load() refuses an R with higher ranks, as a probable mistake.
  void remember_size(const ResourceSet& resources) {
    if (!resources.empty())
      size_ = std::max<std::uint64_t>(size_, std::uint64_t{resources.ranks().last()} + 1);
  }

  void follow_elsewhere(std::unique_ptr<client::Connection> parent) {
    parent_->set_settle(config_.resource.parent_settle);
    if (parent) {
      parent_->follow(std::move(parent));
    } else {
      parent_->ignore();
    }
  }

  // Trims the history once a minute. The interval only affects the size on disk.
  void trim_history() {
    constexpr std::chrono::minutes between{1};
    store_.trim(config_.store.history < forever ? process::wall_clock() - config_.store.history : WallTime());
    trim_timer_.expires_after(between);
    trim_timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) trim_history();
    });
  }

  // The C library keeps the memory that many closed connections have freed, since libzmq's buffers fragment
  // the heap. malloc_trim() takes some milliseconds, so call it only after many connections have ended.
  void give_back_memory() {
    constexpr std::chrono::seconds between{5};
    constexpr std::size_t crowd = 512;
    if (listeners_.have_emptied(crowd)) {
      const transport::LoopHold hold(&service_.holds(), "releasing memory");
      malloc_trim(0);
    }
    memory_timer_.expires_after(between);
    memory_timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) give_back_memory();
    });
  }

  // Commits and answers all decided commands, then ends the streams, then the loop.
  void stop() {
    if (stopping_) return;
    take_nothing_in();
    if (host_) host_->stop();
    service_.shut_down();
    store_.stop();
    // Posted, so that it runs after the store's last commit or failure.
    asio::post(loop_, [this] { flush_.begin(); });
  }

  void store_failed(const Error& error) {
    spdlog::critical("stopping, the store failed: {}", error.what());
    take_nothing_in();
    service_.on_store_failed(error);
    if (host_) host_->stop();
    exit_status_ = 1;
    flush_.begin();
  }

  /// Stops all inputs that change the state: clients, SIGHUP, the parent and timers.
  void take_nothing_in() {
    if (std::exchange(stopping_, true)) return;
    process::notify_stopping();
    parent_.reset();
    trim_timer_.cancel();
    agent_timer_.cancel();
    listeners_.stop_reading();
  }

  const Options options_;
  config::Config config_;
  /// The error if exclusions or queues of the configuration do not fit its inventory.
  std::optional<Error> fault_;
  config::Inventory inventory_;
  module::RecordedState recorded_;
  /// The R that was configured at the start, encoded (configured_text).
  std::optional<std::string> replaced_;
  /// Whether `inventory_` is an R that was loaded in its place.
  bool loaded_ = false;
  std::uint64_t size_ = 0;
  config::Absent absent_;
  /// Initialized before the store, so that a start with an unusable endpoint leaves no files behind.
  const std::vector<proto::Endpoint> endpoints_;
  std::unique_ptr<client::Connection> parent_connection_;
  asio::io_context loop_{1};
  store::Store store_;
  instance::CopiedLog log_;
  service::Service service_;
  Listeners listeners_;
  /// Present if a Flux instance may attach.
  std::unique_ptr<instance::Host> host_;
  ResponseFlush flush_;
  std::unique_ptr<parent::ParentLink> parent_;
  asio::signal_set signals_;
  asio::signal_set hang_up_;
  asio::steady_timer trim_timer_;
  asio::steady_timer memory_timer_;
  asio::steady_timer agent_timer_;
  process::Watchdog watchdog_;
  /// The last event of the start: clients are told where to connect once it is on disk.
  store::Sequence start_ = 0;
  bool announced_ = false;
  bool stopping_ = false;
  int exit_status_ = 0;
};

}  // namespace

int run(const Options& options) {
  config::Config config = load_configuration(options);
  set_up_logging(options.log_level.value_or(config.log.level));
  log_passed_over(config);
  return Server(options, std::move(config)).run();
}

}  // namespace resourced::daemon

#include "daemon/server.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
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
#include <zmq.hpp>

#include "client/connection.hpp"
#include "config/config.hpp"
#include "config/describe.hpp"
#include "config/inventory.hpp"
#include "config/reload.hpp"
#include "core/engine/engine.hpp"
#include "core/module/partition.hpp"
#include "core/rset/targets.hpp"
#include "core/text/hostlist.hpp"
#include "daemon/endpoints.hpp"
#include "daemon/log.hpp"
#include "daemon/parent/parent_link.hpp"
#include "daemon/peers/access.hpp"
#include "daemon/process.hpp"
#include "daemon/service/service.hpp"
#include "daemon/service_manager.hpp"
#include "daemon/settings.hpp"
#include "daemon/store/import.hpp"
#include "daemon/store/store.hpp"
#include "daemon/store/store_peek.hpp"
#include "daemon/transport/local_transport.hpp"
#include "daemon/transport/socket_file.hpp"
#include "daemon/transport/zap.hpp"
#include "daemon/transport/zmq_transport.hpp"
#include "proto/defaults.hpp"
#include "proto/key_file.hpp"
#include "proto/uri.hpp"

namespace resourced::daemon {
namespace {

namespace asio = boost::asio;

double wall_clock() {
  using Seconds = std::chrono::duration<double>;
  return std::chrono::duration_cast<Seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double uptime() {
  using Seconds = std::chrono::duration<double>;
  return std::chrono::duration_cast<Seconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

config::Config load_configuration(const Options& options) {
  config::Config config = config::load(options.config.empty() ? default_configuration() : options.config);
  if (!config.resource.parent_uri.empty() && !config.resource.has_inventory()) {
    config.resource.parent_r = environment("RESOURCED_PARENT_R").value_or("");
  }
  return config;
}

void log_passed_over(const config::Config& config) {
  for (const std::string& line : config.passed_over) spdlog::info("{}", line);
}

std::string state_directory(const Options& options, const config::Config& config) {
  if (!options.state.empty()) return options.state;
  if (!config.store.directory.empty()) return config.store.directory;
  return proto::state_directory(environment);
}

// One budget over all endpoints: neither one peer nor all of them may use up the descriptors of the process,
// which libzmq does not survive, and the owner always gets in.
std::shared_ptr<transport::ConnectionCount> connection_budget(const config::Limits& limits) {
  const std::size_t files = raise_descriptor_limit();
  transport::ConnectionCount::Limits budget;
  budget.per_peer = std::min(limits.connections_per_uid, files / 4);
  budget.of_others = files / 2;
  budget.owners = {"uid 0", fmt::format("uid {}", geteuid())};
  if (limits.connections_per_uid > budget.per_peer) {
    spdlog::warn("limits.connections-per-uid is {} here: the process may open {} files", budget.per_peer,
                 files);
  }
  return std::make_shared<transport::ConnectionCount>(std::move(budget));
}

config::Inventory configured_inventory(const config::Config& config) {
  if (config.resource.has_inventory()) return config::load_inventory(config);
  if (!config.resource.parent_uri.empty()) {
    throw config.fault("resource.parent-uri", "no path and no $RESOURCED_PARENT_R: no R that was handed down",
                       ENOENT);
  }
  if (config.monitor.mode == config::MonitorMode::agents) return {};
  throw config.fault("resource", "no path, no config and no agents to discover it: no inventory", ENOENT);
}

// The resources alone: what the configuration says of targets may be meant for an R that was loaded.
config::Inventory bare_inventory(config::Config config) {
  config.resource.exclude.clear();
  config.queues.clear();
  return configured_inventory(config);
}

// The configured inventory, bare with `fault` if what the configuration says of targets does not fit it: a
// store may hold an R that was loaded, which that is meant for. Throws where there is no store.
config::Inventory starting_inventory(const config::Config& config, const std::string& state,
                                     std::optional<Error>& fault) {
  try {
    return configured_inventory(config);
  } catch (const Error& error) {
    const bool is_bare = config.resource.exclude.empty() && config.queues.empty();
    if (is_bare || !std::filesystem::exists(state)) throw;
    fault = error;
    return bare_inventory(config);
  }
}

// The configured R that a loaded one replaces, as the store keeps it; nothing where no inventory is
// configured.
std::optional<std::string> configured_text(const config::Config& config, const config::Inventory& inventory) {
  if (!config.resource.has_inventory()) return std::nullopt;
  return inventory.resources.without_local_properties().encode();
}

bool was_loaded(const RecordedState& recorded) {
  return recorded.inventory.resources && recorded.inventory.method == DefineMethod::reload;
}

// Whether the R that was loaded in the place of this inventory still is in force.
bool is_loaded(const config::Config& config, const config::Inventory& inventory,
               const RecordedState& recorded) {
  const bool may_be_loaded =
      !inventory.handed_down && (config.resource.has_inventory() || !config.resource.rediscover);
  return was_loaded(recorded) && may_be_loaded &&
         recorded.inventory.replaced == configured_text(config, inventory);
}

// A log line that names the R in force, for a store in which an R was loaded.
std::string_view in_force(const config::Config& config, const config::Inventory& inventory, bool is_loaded) {
  if (is_loaded)
    return "in force is the R that resource.reload loaded, as the configured inventory is the same";
  if (inventory.handed_down)
    return "in force is the R of the enclosing instance, in the place of one that was loaded";
  if (config.resource.has_inventory())
    return "in force is the configured inventory, which has changed since an R was loaded";
  return "no inventory is configured: node agents tell it, in the place of the R that was loaded";
}

// The time at which the expiration in force was set at run time; 0 if it is the configured one.
double expiration_set_at(const RecordedState& recorded, const ResourceSet& configured) {
  const auto& expiration = recorded.expiration;
  return expiration && expiration->configured == configured.expiration() ? expiration->timestamp : 0;
}

// Nothing where no parent is to be followed.
std::unique_ptr<client::Connection> parent_connection(const config::Config& config,
                                                      const std::vector<proto::Endpoint>& own) {
  if (config.resource.parent_uri.empty()) return nullptr;
  auto connection = parent::connect_parent(config);
  for (const proto::Endpoint& endpoint : own) {
    if (endpoint.uri() == connection->uri()) {
      throw config.fault("resource.parent-uri", "this is where this daemon listens itself");
    }
  }
  if (config.resource.no_update_watch) return nullptr;
  return connection;
}

/// How long clients may take for their last answers before the loop ends.
constexpr std::chrono::seconds drain_time{1};

bool revokes_keys(const config::Access& before, const config::Access& after) {
  return std::ranges::any_of(before.keys, [&](const config::AccessKey& key) {
    return std::ranges::find(after.keys, key.public_key, &config::AccessKey::public_key) == after.keys.end();
  });
}

// A configuration may still name nodes that left for good, or did not report, where agents tell the
// inventory.
config::Absent absent_targets(const config::Config& config, const RecordedState& recorded) {
  config::Absent absent;
  if (config.resource.has_inventory()) return absent;
  config::excluded_hosts(config).for_each([&](std::string_view host) { absent.hosts.emplace(host); });
  for (const TargetName& target : recorded.shrunk) absent.hosts.insert(target.host);
  // Nothing tells which rank a node had that left before the last discovery.
  absent.any_rank = !recorded.shrunk.empty();
  if (const auto& before = recorded.inventory.resources) absent.ranks = before->ranks();
  if (config.resource.size) absent.ranks |= IdSet::range(0, *config.resource.size - 1);
  return absent;
}

// Names some hosts of queues that no node agent has reported.
void log_unreported(const config::Config& config, const ResourceSet& found) {
  constexpr std::size_t most_named = 16;
  for (const config::Queue& queue : config.queues) {
    if (queue.hosts == config::every_host) continue;
    const HostSearch search = found.ranks_of(Hostlist::parse(queue.hosts), most_named);
    if (search.unknown.empty()) continue;
    spdlog::warn("queues.{}.hosts: hosts that did not report are left out: {}{}", queue.name,
                 fmt::join(search.unknown, ","), search.unknown.size() > most_named ? ",..." : "");
  }
}

// Applies the queues and exclusions of a configuration to an inventory that it does not name.
config::Inventory discovered_inventory(const config::Config& config, const ResourceSet& resources,
                                       config::Absent absent) {
  // Agents report no properties: those of queues are the configuration's, which may have changed since.
  ResourceSet effective = resources.without_local_properties();
  // A node that a queue or exclude names need not report.
  absent.any_host = !config.resource.has_inventory();
  config::add_queue_properties(config, effective, absent);
  IdSet exclude = config::load_exclude(config, effective, absent);
  return {std::move(effective), "dynamic-discovery", std::move(exclude)};
}

class Server {
 public:
  Server(const Options& options, config::Config config)
      : options_(options),
        config_(std::move(config)),
        inventory_(starting_inventory(config_, state_directory(options_, config_), fault_)),
        endpoints_(endpoints(options_, config_.bus)),
        parent_connection_(parent_connection(config_, endpoints_)),
        connections_(connection_budget(config_.limits)),
        store_(state_directory(options, config_)),
        service_(store_, wall_clock,
                 {config::to_json(config_).dump(), config_.resource.journal_max,
                  peers::Access(config_.access, geteuid()), config_.limits, uptime, agent_settings(config_),
                  [this](double when) { wake_at(when); }, [this] { reload(); },
                  [this](const ResourceSet& resources, const std::string& path, bool force) {
                    load(resources, path, force);
                  },
                  [this](double seconds, std::function<void()> work) { later(seconds, std::move(work)); }}),
        zap_(
            loop_, context_, [this](std::string_view key) { return service_.knows_key(key); },
            [this](const std::string& why) { service_.on_refused(why); }),
        signals_(loop_, SIGTERM, SIGINT),
        hang_up_(loop_, SIGHUP),
        trim_timer_(loop_),
        memory_timer_(loop_),
        agent_timer_(loop_),
        drain_timer_(loop_),
        watchdog_(loop_) {
    if (!config_.bus.curve_key_file.empty())
      curve_ = transport::load_curve_server(config_.bus.curve_key_file, zap_);
    // Listen before events are recorded, as an address that cannot be used refuses the start. Clients that
    // connect meanwhile are served when the loop runs.
    for (const proto::Endpoint& endpoint : endpoints_) listen(endpoint);
    start_module();
    // Nothing has to be on disk where nothing is known yet.
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
                    if (last >= start_ && !std::exchange(announced_, true)) announce();
                  },
                  [this](const Error& error) { store_failed(error); },
                  [](const Error& error) { spdlog::error("history is not trimmed: {}", error.what()); }});
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
    StartCommand start;
    start.method = method;
    start.inventory = std::make_shared<const ResourceSet>(inventory_.resources);
    start.exclude = inventory_.exclude;
    if (config_.monitor.mode == config::MonitorMode::fixed) start.online = inventory_.resources.ranks();
    const double expiration_set = expiration_set_at(recorded_, inventory_.resources);
    start.recorded = std::exchange(recorded_, {});
    service_.step(engine::Start{std::move(start), partition_rules(config_, inventory_.resources, absent_)});
    if (inventory_.handed_down) enclose(expiration_set);
    service_.on_defined();
  }

  void enclose(double expiration_set) {
    service_.enclose();
    ParentMirror mirror(*inventory_.handed_down, inventory_.resources, config_.resource.parent_settle,
                        expiration_set);
    parent_ = std::make_unique<parent::ParentLink>(
        loop_, std::move(mirror), uptime, [this](const ParentChange& change) { service_.on_parent(change); });
    if (parent_connection_) parent_->follow(std::move(parent_connection_));
  }

  void discover() {
    RecordedHosts hosts;
    if (const auto& before = recorded_.inventory.resources) {
      hosts.ranks = before->ranks();
      hosts.hosts = before->nodelist();
    }
    for (const TargetName& target : recorded_.shrunk) {
      if (target.ordinal == 0) hosts.gone.insert(target.host);
    }
    service_.discover(
        {config_.resource.size, config_.resource.discovery_timeout}, std::move(hosts),
        [this](const ResourceSet& found) {
          try {
            log_unreported(config_, found);
            define(DefineMethod::dynamic_discovery, discovered_inventory(config_, found, absent_));
          } catch (const Error& error) {
            // The discovered hosts do not fit `exclude` or the partitions. A later agent cannot change
            // that, so the daemon ends.
            spdlog::critical("the inventory that was discovered is refused, stopping: {}", error.what());
            exit_status_ = 1;
            // Posted: the caller is still using the agents, which stop() ends.
            asio::post(loop_, [this] { stop(); });
          }
        });
    service_.exclude_from_discovery(config::excluded_hosts(config_));
  }

  void wake_at(double when) {
    if (stopping_) return;
    using Duration = asio::steady_timer::duration;
    const auto time = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(when));
    agent_timer_.expires_at(asio::steady_timer::time_point(time));
    agent_timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) service_.on_time();
    });
  }

  void later(double seconds, std::function<void()> work) {
    if (seconds <= 0) return asio::post(loop_, std::move(work));
    const auto timer = std::make_shared<asio::steady_timer>(loop_);
    timer->expires_after(
        std::chrono::ceil<asio::steady_timer::duration>(std::chrono::duration<double>(seconds)));
    timer->async_wait([timer, work = std::move(work)](const boost::system::error_code& error) {
      if (!error) work();
    });
  }

  void listen(const proto::Endpoint& endpoint) {
    if (!endpoint.path.empty()) {
      std::error_code ignored;
      std::filesystem::create_directories(std::filesystem::path(endpoint.path).parent_path(), ignored);
    }
    const transport::SocketMode mode{config_.bus.socket_mode, config_.bus.socket_group};
    const transport::PrivateSockets until_modes_are_set;
    if (endpoint.scheme == proto::Scheme::local) {
      transports_.push_back(
          transport::make_local_transport(loop_, endpoint.path, local_options(), ids_, service_));
    } else {
      transports_.push_back(
          transport::make_zmq_transport(loop_, context_, endpoint.uri(), zmq_options(), ids_, service_));
    }
    if (endpoint.scheme == proto::Scheme::local) transport::set_socket_mode(endpoint.path, mode);
    if (endpoint.scheme == proto::Scheme::ipc)
      transport::set_socket_mode(endpoint.path, transport::bus_socket_mode(mode));
  }

  transport::ZmqOptions zmq_options() {
    const config::Bus& bus = config_.bus;
    return {bus.send_hwm,           bus.receive_hwm,
            bus.heartbeat_interval, bus.heartbeat_timeout,
            bus.max_message_size,   config_.limits.handshake_timeout,
            connections_,           curve_,
            &service_.holds()};
  }

  transport::LocalOptions local_options() {
    transport::LocalOptions options;
    options.max_message_size = config_.bus.max_message_size;
    options.owner = geteuid();
    options.frame_timeout = config_.limits.handshake_timeout;
    options.connections = connections_;
    options.welcomes = [this](const transport::Credentials& credentials) {
      return service_.welcomes(credentials);
    };
    options.holds = &service_.holds();
    return options;
  }

  // Once the start itself is on disk, as a store that cannot be written to keeps the daemon from starting.
  void announce() {
    // Return memory: reading an inventory leaves up to twice the used heap free.
    malloc_trim(0);
    spdlog::info("{}", status());
    // A reader that has gone away already is no reason not to serve.
    for (const auto& transport : transports_)
      std::fputs(fmt::format("listening on {}\n", transport->endpoint()).c_str(), stdout);
    std::fflush(stdout);
    notify_ready(status());
  }

  std::string status() {
    if (!service_.engine().module().defined()) return "waiting for node agents to tell the inventory";
    const ResourceCounts counts = service_.engine().module().inventory().counts();
    return fmt::format("serving {} nodes, {} cores, {} gpus", counts.nodes, counts.cores, counts.gpus);
  }

  void wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int number) {
      if (error) return;
      spdlog::info("stopping on signal {}", number);
      // A second one does not wait for clients.
      if (stopping_) return loop_.stop();
      wait_for_signal();
      stop();
    });
  }

  void wait_for_reload() {
    hang_up_.async_wait([this](const boost::system::error_code& error, int /*number*/) {
      if (error || stopping_) return;
      const transport::LoopHold hold(&service_.holds(), "reload by signal");
      notify_reloading();
      try {
        reload();
      } catch (const Error& refused) {
        spdlog::error("reload refused, the configuration stays as it was: {}", refused.what());
      }
      notify_ready(status());
      wait_for_reload();
    });
  }

  // All of the new configuration takes effect, or none: what can refuse comes first.
  void reload() {
    config::Config next = load_configuration(options_);
    config::Inventory inventory = loaded_ ? bare_inventory(next) : configured_inventory(next);
    const bool waits = loaded_ && configured_text(next, inventory) != replaced_;
    const bool defined = service_.engine().module().defined();
    if ((loaded_ || !next.resource.has_inventory()) && defined) {
      inventory = discovered_inventory(next, inventory_.resources, absent_);
    }
    const config::ReloadPlan plan = config::plan_reload(config_, inventory_, next, inventory);
    auto parent = plan.parent ? parent_connection(next, endpoints_) : nullptr;
    ReloadCommand command;
    command.exclude = inventory.exclude;
    command.property_add.insert(plan.property_add.begin(), plan.property_add.end());
    command.property_remove.insert(plan.property_remove.begin(), plan.property_remove.end());
    command.drains = service_.verify_included(command.exclude);
    const Hostlist excluded = config::excluded_hosts(next);
    if (defined) service_.step(command);

    const bool revokes = revokes_keys(config_.access, next.access);
    config_ = std::move(next);
    inventory_ = std::move(inventory);
    service_.set_configuration(config::to_json(config_).dump());
    service_.set_journal_max(config_.resource.journal_max);
    service_.set_limits(config_.limits);
    service_.set_access(peers::Access(config_.access, geteuid()));
    if (revokes) {
      for (const auto& transport : transports_) transport->drop_silent();
    }
    if (const auto settings = agent_settings(config_)) service_.set_agents(*settings);
    if (plan.parent) follow_elsewhere(std::move(parent));
    if (!options_.log_level) set_log_level(config_.log.level);
    trim_history();
    log_passed_over(config_);
    spdlog::info("configuration reloaded");
    if (waits) {
      spdlog::warn("the configured inventory has changed: it replaces the loaded R at the next start");
    }
    service_.exclude_from_discovery(excluded);
  }

  // Another R in the place of the inventory: all of it, or none.
  void load(const ResourceSet& resources, const std::string& path, bool force) {
    const IdSet& ranks = resources.ranks();
    const std::uint64_t size = config_.resource.size.value_or(size_);
    if (ranks.last() >= size) {
      // As Flux writes it.
      if (!force) {
        throw Error(
            EINVAL,
            fmt::format("resource object contains ranks execeeding size={} (override with -f))", size));
      }
      spdlog::warn("{}: has ranks beyond the {} of this instance", path, size);
    }
    config::Inventory next = discovered_inventory(config_, resources, absent_);
    LoadCommand command;
    command.inventory = std::make_shared<const ResourceSet>(next.resources);
    command.exclude = next.exclude;
    if (config_.monitor.mode == config::MonitorMode::fixed) command.online = ranks;
    command.replaced = replaced_;
    service_.step(engine::Load{std::move(command), partition_rules(config_, next.resources)});
    inventory_ = std::move(next);
    loaded_ = true;
    remember_size(inventory_.resources);
    spdlog::info("loaded {}: it is in force until the configured inventory changes", path);
    notify_ready(status());
  }

  // The ranks that this instance has or had: an R with others is not loaded by mistake.
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

  // Old events are dropped now and then; how often matters to nobody but the disk.
  void trim_history() {
    constexpr std::chrono::minutes between{1};
    store_.trim(std::isfinite(config_.store.history) ? wall_clock() - config_.store.history : 0);
    trim_timer_.expires_after(between);
    trim_timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) trim_history();
    });
  }

  // The C library keeps what a crowd of connections has freed, as libzmq's buffers lie between others'. To
  // give it back takes some milliseconds, so it is done only where it is worth that.
  void give_back_memory() {
    constexpr std::chrono::seconds between{5};
    constexpr std::size_t crowd = 512;
    if (connections_->has_emptied(crowd)) {
      const transport::LoopHold hold(&service_.holds(), "giving back memory");
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
    service_.shut_down();
    store_.stop();
    // Behind what the store has posted: its last commit, or its failure.
    asio::post(loop_, [this] { drain(); });
  }

  void store_failed(const Error& error) {
    spdlog::critical("the store failed, stopping: {}", error.what());
    take_nothing_in();
    service_.on_store_failed(error);
    exit_status_ = 1;
    drain();
  }

  /// From here on nothing changes the state: neither clients nor signals, the parent or time.
  void take_nothing_in() {
    if (std::exchange(stopping_, true)) return;
    notify_stopping();
    parent_.reset();
    trim_timer_.cancel();
    agent_timer_.cancel();
    for (const auto& transport : transports_) transport->stop_reading();
  }

  // Ends the loop once clients have what they were answered, and have closed their connections. Clients that
  // read are waited for; as soon as none of those that are left has taken anything for a while, they are not.
  // What ZeroMQ was given it sends while its context ends (linger): both together take no more than 2 s.
  void drain() {
    if (drained_by_) return;
    drained_by_ = asio::steady_timer::clock_type::now() + drain_time;
    for (const auto& transport : transports_) transport->end_writing();
    watch_drain(0, asio::steady_timer::clock_type::now());
  }

  void watch_drain(std::size_t unsent_before, asio::steady_timer::time_point since) {
    constexpr std::chrono::milliseconds pause{2};
    constexpr std::chrono::milliseconds to_read{400};
    constexpr std::chrono::milliseconds to_close{250};
    std::size_t unsent = service_.unsent();
    std::size_t unclosed = 0;
    for (const auto& transport : transports_) {
      unsent += transport->unsent();
      unclosed += transport->unclosed();
    }
    const auto now = asio::steady_timer::clock_type::now();
    if (unsent != unsent_before) since = now;
    const bool is_late = now >= *drained_by_ || now - since >= (unsent > 0 ? to_read : to_close);
    if (is_late || (unsent == 0 && unclosed == 0)) return loop_.stop();
    drain_timer_.expires_after(pause);
    drain_timer_.async_wait([this, unsent, since](const boost::system::error_code& error) {
      if (!error) watch_drain(unsent, since);
    });
  }

  const Options options_;
  config::Config config_;
  /// Why what the configuration says of targets does not fit its inventory.
  std::optional<Error> fault_;
  config::Inventory inventory_;
  RecordedState recorded_;
  /// The R that the configuration of the start names.
  std::optional<std::string> replaced_;
  /// Whether `inventory_` was loaded in its place.
  bool loaded_ = false;
  std::uint64_t size_ = 0;
  config::Absent absent_;
  /// Before the store: what refuses to start should not leave anything behind.
  const std::vector<proto::Endpoint> endpoints_;
  std::unique_ptr<client::Connection> parent_connection_;
  const std::shared_ptr<transport::ConnectionCount> connections_;
  asio::io_context loop_{1};
  zmq::context_t context_;
  transport::ClientIds ids_;
  store::Store store_;
  service::Service service_;
  transport::ZapHandler zap_;
  std::optional<transport::CurveServer> curve_;
  std::vector<std::unique_ptr<transport::Transport>> transports_;
  std::unique_ptr<parent::ParentLink> parent_;
  asio::signal_set signals_;
  asio::signal_set hang_up_;
  asio::steady_timer trim_timer_;
  asio::steady_timer memory_timer_;
  asio::steady_timer agent_timer_;
  asio::steady_timer drain_timer_;
  Watchdog watchdog_;
  /// The last event of the start: clients are told where to connect once it is on disk.
  store::Sequence start_ = 0;
  bool announced_ = false;
  bool stopping_ = false;
  /// Set while the loop goes on only for answers that are on their way.
  std::optional<asio::steady_timer::time_point> drained_by_;
  int exit_status_ = 0;
};

}  // namespace

int run(const Options& options) {
  config::Config config = load_configuration(options);
  set_up_logging(options.log_level.value_or(config.log.level));
  log_passed_over(config);
  return Server(options, std::move(config)).run();
}

namespace {

// Nothing where a store cannot be looked at now; a line says so.
std::optional<RecordedState> peek(const std::string& directory) {
  try {
    return store::peek_store(directory);
  } catch (const Error& error) {
    if (error.errnum() != EBUSY && error.errnum() != EACCES) throw;
    fmt::print(stderr, "resourced: {}: what was changed at run time is not checked\n", error.what());
    return std::nullopt;
  }
}

// The inventory that a start would define with the recorded state; nothing if it would wait for agents.
// Throws the error with which a start would fail. `fault` is that of starting_inventory().
std::optional<config::Inventory> check_start(const config::Config& config, config::Inventory inventory,
                                             RecordedState recorded, const std::optional<Error>& fault) {
  const bool loaded = is_loaded(config, inventory, recorded);
  if (!loaded && fault) throw Error(*fault);
  if (was_loaded(recorded)) fmt::print("{}\n", in_force(config, inventory, loaded));
  if (!loaded && was_loaded(recorded)) recorded.inventory = {};
  const config::Absent absent = absent_targets(config, recorded);
  if (loaded) {
    inventory = discovered_inventory(config, *recorded.inventory.resources, absent);
  } else if (!config.resource.has_inventory()) {
    if (!recorded.inventory.resources || config.resource.rediscover) return std::nullopt;
    inventory = discovered_inventory(config, *recorded.inventory.resources, absent);
  }
  StartCommand start;
  start.inventory = std::make_shared<const ResourceSet>(inventory.resources);
  start.exclude = inventory.exclude;
  start.recorded = std::move(recorded);
  const auto rules = partition_rules(config, inventory.resources, absent);
  for (const auto& [event, is_recorded] : Module::start(start, wall_clock())) {
    const auto* define = std::get_if<DefineEvent>(&event.body);
    if (define == nullptr) continue;
    (void)divide_at_start(rules, *define);
    inventory.resources = *define->inventory;
    inventory.exclude = define->exclude;
  }
  return inventory;
}

}  // namespace

void check(const Options& options) {
  const config::Config config = load_configuration(options);
  set_up_logging(options.log_level.value_or(config.log.level));
  log_passed_over(config);
  const std::string state = state_directory(options, config);
  std::optional<Error> fault;
  const config::Inventory inventory = starting_inventory(config, state, fault);
  std::optional<config::Inventory> defined;
  if (const auto recorded = peek(state); recorded || config.resource.has_inventory()) {
    defined = check_start(config, inventory, recorded.value_or(RecordedState{}), fault);
  }
  (void)endpoints(options, config.bus);
  if (!config.resource.parent_uri.empty()) parent::check_parent(config);
  // Another user than the daemon's may run --check, who cannot read the secret key.
  if (!config.bus.curve_key_file.empty()) (void)proto::load_public_key(config.bus.curve_key_file);
  fmt::print("{}", config::describe(config, defined ? &*defined : nullptr));
}

void import_log(const Options& options) {
  const config::Config config = load_configuration(options);
  std::ifstream file(options.import);
  if (!file) throw Error(errno, fmt::format("{}: {}", options.import, std::strerror(errno)));
  store::ImportOptions settings;
  settings.max_line = std::min(settings.max_line, config.bus.max_message_size);
  if (config.resource.has_inventory()) {
    auto inventory = std::make_shared<const ResourceSet>(config::load_inventory(config).resources);
    settings.configured_expiration = inventory->expiration();
    settings.partitions = partition_rules(config, *inventory);
    settings.inventory = std::move(inventory);
  }
  const store::Imported imported =
      store::import_events(file, options.import, state_directory(options, config), settings);
  fmt::print("imported {} events; {} targets are drained\n", imported.events, imported.drained);
}

}  // namespace resourced::daemon

// The inventory of a daemon that decides: its definition at the start, reloads, and R that operators load.
#include <algorithm>
#include <memory>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/reload.hpp"
#include "core/error.hpp"
#include "core/module/partition.hpp"
#include "core/text/hostlist.hpp"
#include "daemon/daemon.hpp"
#include "daemon/inventory.hpp"
#include "daemon/log/etcd/credentials.hpp"
#include "daemon/log/etcd/file_digests.hpp"
#include "daemon/log/etcd/identity.hpp"
#include "daemon/membership.hpp"
#include "daemon/process.hpp"
#include "daemon/settings.hpp"
#include "daemon/takeover.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "daemon/transport/socket_file.hpp"
#include "os/log.hpp"

namespace resourced::daemon {

namespace asio = boost::asio;

using module::DefineMethod;
using ::resourced::cluster::FileDigests;
using rset::ResourceSet;

void Daemon::leave() {
  if (!log::etcd::read_identity(directory_)) return;
  // Errors of the start come first, as this cannot be undone.
  if (!host_) (void)check_start(config_, inventory_, recorded_, fault_);
  leave_cluster(directory_);
}

void Daemon::start_module() {
  replaced_ = configured_text(config_, inventory_);
  remember_size(inventory_.resources);
  config::Config start = config_;
  // Discover anew only at the start of a process, not when another leader is taken over from.
  if (leader_ && led_) start.resource.rediscover = false;
  loaded_ = is_loaded(start, inventory_, recorded_);
  if (!loaded_ && fault_) throw Error(*fault_);
  if (is_alone()) leave();
  if (was_loaded(recorded_)) os::log_info("{}", in_force(config_, inventory_, loaded_));
  if (!loaded_ && was_loaded(recorded_)) recorded_.kept_inventory = {};
  absent_ = absent_targets(config_, recorded_);
  if (is_alone()) start_store();
  const bool is_watched = is_alone() && watches_agents();
  upkeep_ = std::make_unique<Upkeep>(loop_, store_, listeners_, service_.holds(), config_.store.history,
                                     is_watched ? std::optional(os::steady_clock() + grace_) : std::nullopt);
  upkeep_->begin();
  if (host_) {
    host_->begin(std::exchange(recorded_, {}));
  } else {
    const bool is_named = inventory_.handed_down || config_.resource.has_inventory();
    const bool is_kept = recorded_.kept_inventory.resources && !is_named && !start.resource.rediscover;
    if (loaded_ || is_kept) {
      define(DefineMethod::kvs, discovered_inventory(config_, *recorded_.kept_inventory.resources, absent_));
    } else if (inventory_.handed_down) {
      define(DefineMethod::job_info, std::move(inventory_));
    } else if (config_.resource.has_inventory()) {
      define(DefineMethod::configuration, std::move(inventory_));
    } else {
      service_.discover({config_.resource.size, config_.resource.discovery_timeout},
                        recorded_hosts(recorded_));
      service_.exclude_from_discovery(config::excluded_hosts(config_));
    }
  }
  start_ = service_.engine().applied();
  // Without an inventory there is no start event whose commit could announce the daemon.
  if (service_.engine().module().defined()) return;
  announced_ = true;
  asio::post(loop_, [this] { announce(); });
}

void Daemon::define(DefineMethod method, config::Inventory inventory) {
  inventory_ = std::move(inventory);
  remember_size(inventory_.resources);
  module::DefineCommand start;
  start.method = method;
  start.inventory = std::make_shared<const ResourceSet>(inventory_.resources);
  start.exclude = inventory_.exclude;
  if (config_.monitor.mode == config::MonitorMode::fixed) start.online = inventory_.resources.ranks();
  if (grace_ > Seconds(0) && watches_agents()) start.online = online_before(recorded_, inventory_.resources);
  const WallTime expiration_set = expiration_set_at(recorded_, inventory_.resources);
  start.partitions = partition_rules(config_, inventory_.resources, absent_);
  service_.step(engine::Start{std::move(start), std::exchange(recorded_, {}), std::nullopt, grace_,
                              leader_ ? leader_->former_holders() : std::vector<module::PartitionHolder>(),
                              ledger_rules(config_)});
  service_.set_keep(config_.acquire.keep);
  log_remarks(config_, service_.engine().module().inventory());
  log_waiting();
  if (inventory_.handed_down) enclose(expiration_set);
  service_.on_defined();
}

void Daemon::log_waiting() {
  const engine::Engine& engine = service_.engine();
  const std::string line = waiting_for_hosts(engine.absent(), engine.module().ledger());
  if (!line.empty()) os::log_warning("{}", line);
}

void Daemon::enclose(WallTime expiration_set) {
  service_.step(engine::Enclose{});
  nodes::ParentMirror mirror(*inventory_.handed_down, inventory_.resources, config_.resource.parent_settle,
                             expiration_set);
  parent_ = std::make_unique<instance::ParentLink>(
      loop_, std::move(mirror), os::steady_clock, [this](const nodes::ParentChange& change) {
        service_.take(engine::ParentSays{change}, "enclosing instance");
      });
  if (parent_connection_) parent_->follow(std::move(parent_connection_));
}

void Daemon::on_discovered(const ResourceSet& found) {
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

void Daemon::remember_size(const ResourceSet& resources) {
  if (!resources.empty()) size_ = std::max<std::uint64_t>(size_, std::uint64_t{resources.ranks().last()} + 1);
}

void Daemon::load(const ResourceSet& resources, const std::string& path, bool force, const By& by) {
  if (host_) return host_->load(resources, force, by);
  check_size(resources, config_.resource.size.value_or(size_), path, force);
  config::Inventory next = discovered_inventory(config_, resources, absent_);
  module::DefineCommand command;
  command.inventory = std::make_shared<const ResourceSet>(next.resources);
  command.exclude = next.exclude;
  if (config_.monitor.mode == config::MonitorMode::fixed) command.online = resources.ranks();
  command.replaced = replaced_;
  command.partitions = partition_rules(config_, next.resources);
  service_.step(std::move(command), by);
  inventory_ = std::move(next);
  loaded_ = true;
  remember_size(inventory_.resources);
  os::log_info("loaded {}: it stays in force until the configured inventory changes", path);
  log_waiting();
  tell_ready(status());
}

// Reloads

void Daemon::reload_by_signal() {
  const transport::LoopHold hold(&service_.holds(), "reload on SIGHUP");
  os::notify_reloading();
  try {
    reload(module::BySignal{"HUP"});
  } catch (const Error& refused) {
    os::log_error("reload refused, the old configuration stays in force: {}", refused.what());
  }
  // Reads show only what is committed, and a status after the reload should show its changes.
  if (!follower_ && service_.committed().waits_since()) {
    reload_ = service_.engine().applied();
  } else {
    os::notify_ready(status());
  }
}

void Daemon::reload(const By& by) {
  listeners_.check_reachable();
  if (host_ && !host_->is_reachable()) throw transport::socket_is_gone(config_.flux.socket);
  config::Config next = load_configuration(options_);
  follower_ ? reload_standby(std::move(next)) : reload_module(std::move(next), by);
}

void Daemon::check_start_with(config::Config config) const {
  service_.committed().require_known();
  // A member that knows a leader would take over its inventory.
  if (led_ || follower_->knows_leader()) config.resource.rediscover = false;
  std::optional<Error> fault;
  config::Inventory inventory = starting_inventory(config, directory_, fault);
  (void)check_start(config, std::move(inventory), service_.committed().state(), fault);
}

// Checks a configuration as the leader that this daemon may become would.
void Daemon::reload_standby(config::Config next) {
  config::check_settings(config_, next);
  std::optional<Error> fault;
  FileDigests files = log::etcd::file_digests(next, starting_inventory(next, directory_, fault));
  (void)parent_connection(next, endpoints_);
  check_start_with(next);
  const log::etcd::Credentials credentials = log::etcd::read_credentials(next.cluster);
  const peers::Access rules = access(next);
  http::Site site = http_site(next.http);
  apply(reloaded(std::move(next), config_), rules, std::move(site));
  follower_->set_credentials(credentials);
  follower_->tell_files(std::move(files));
  os::log_info("configuration reloaded: its inventory is served once this daemon leads");
  follower_->tell();
}

// The new configuration takes effect as a whole or not at all: the steps that can throw come first.
void Daemon::reload_module(config::Config next, const By& by) {
  config::Inventory inventory = loaded_ ? bare_inventory(next) : configured_inventory(next);
  FileDigests files = is_alone() ? FileDigests() : log::etcd::file_digests(next, inventory);
  log::etcd::Credentials credentials;
  if (leader_) credentials = log::etcd::read_credentials(next.cluster);
  const bool waits = loaded_ && configured_text(next, inventory) != replaced_;
  const bool defined = !host_ && service_.engine().module().defined();
  if ((loaded_ || !next.resource.has_inventory()) && defined)
    inventory = discovered_inventory(next, inventory_.resources, absent_);
  const config::ReloadPlan plan = config::plan_reload(config_, inventory_, next, inventory);
  auto parent = plan.parent ? parent_connection(next, endpoints_) : nullptr;
  const text::Hostlist excluded = config::excluded_hosts(next);
  const peers::Access rules = access(next);
  http::Site site = http_site(next.http);
  if (defined) service_.step(reload_command(next, inventory, plan), by);

  inventory_ = std::move(inventory);
  apply(std::move(next), rules, std::move(site));
  if (leader_) {
    member_->tell_files(std::move(files));
    leader_->set_credentials(credentials);
  }
  if (const auto settings = agent_settings(config_)) service_.set_agents(*settings);
  if (plan.parent) {
    parent_->set_settle(config_.resource.parent_settle);
    parent ? parent_->follow(std::move(parent)) : parent_->ignore();
  }
  upkeep_->set_history(config_.store.history);
  log_passed_over(config_);
  log_remarks(config_, service_.engine().module().inventory());
  os::log_info("configuration reloaded");
  log_returning(service_.engine().module());
  if (waits)
    os::log_warning("the configured inventory has changed: it replaces the loaded R at the next start");
  service_.exclude_from_discovery(excluded);
}

void Daemon::apply(config::Config next, const peers::Access& rules, http::Site site) {
  const bool revokes = revokes_keys(config_.access, next.access);
  config_ = std::move(next);
  service_.set_configuration(config::to_json(config_).dump());
  service_.set_journal_max(config_.resource.journal_max);
  service_.set_limits(config_.limits);
  service_.set_ledger(ledger_rules(config_));
  service_.set_keep(config_.acquire.keep);
  listeners_.set_site(std::move(site));
  service_.set_access(rules);
  if (revokes) listeners_.drop_silent();
  if (!options_.log_level) set_log_level(config_.log.level);
}

}  // namespace resourced::daemon

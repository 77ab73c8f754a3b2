#include "daemon/daemon.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "daemon/inventory.hpp"
#include "daemon/log/etcd/file_digests.hpp"
#include "daemon/log/etcd/identity.hpp"
#include "daemon/log/etcd/loop_runtime.hpp"
#include "daemon/log/etcd/resignation.hpp"
#include "daemon/log/store_install.hpp"
#include "daemon/membership.hpp"
#include "daemon/peers/access.hpp"
#include "daemon/process.hpp"
#include "daemon/settings.hpp"
#include "daemon/takeover.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "flux/module/node.hpp"
#include "os/log.hpp"
#include "os/memory.hpp"

namespace resourced::daemon {

namespace asio = boost::asio;

Daemon::Daemon(const Options& options, config::Config config, std::optional<BootTime> led)
    : options_(options),
      config_(std::move(config)),
      directory_(state_directory(options_, config_)),
      led_(led),
      inventory_(starting_inventory(config_, directory_, fault_)),
      endpoints_(endpoints(options_, config_.bus)),
      parent_connection_(parent_connection(config_, endpoints_)),
      store_(directory_),
      signals_(loop_, [this](int number) { take_signal(number); }),
      recorded_(store_.load()),
      log_(store_,
           [this](const log::Record& record) {
             if (host_) host_->copy(record);
           }),
      service_(log_, *this,
               {.configuration = config::to_json(config_).dump(),
                .journal_max = config_.resource.journal_max,
                .access = access(config_),
                .limits = config_.limits,
                .agents = config_.cluster.is_set() ? std::nullopt : agent_settings(config_),
                .read_topologies = config_.flux.socket.empty() ? nullptr : flux::module::read_topologies,
                .write_change = write_change,
                .state = config_.cluster.is_set() ? recorded_ : module::State()}),
      listeners_(loop_, service_, config_),
      flush_(loop_, listeners_, [this] { return service_.unsent(); }),
      accounts_(
          loop_, config_.access.rules,
          [this](const config::UserGroups& groups) {
            service_.set_access_rules(config_.access.rules, groups);
          },
          [this] { return service_.connected_users(); }),
      agent_timer_(loop_),
      watchdog_(loop_) {
  if (store_.damage()) os::log_error("{}", store_.damage()->what());
  if (config_.cluster.is_set()) {
    start_following();
    return;
  }
  // Listen before events are recorded, as an address that cannot be used refuses the start. Clients that
  // connect meanwhile are served when the loop runs.
  listeners_.listen(endpoints_, config_);
  if (!config_.flux.socket.empty())
    host_ = std::make_unique<instance::Host>(loop_, service_, listeners_.ids(), config_.flux,
                                             [this] { os::notify_status(status()); });
  grace_ = grace_at_restart(store_.watched(), os::wall_clock(), config_.cluster.takeover_grace,
                            Upkeep::watch_interval);
  start_module();
}

Daemon::~Daemon() {
  // The store's threads post to the loop, which must outlive them.
  store_.stop();
}

std::optional<int> Daemon::run() {
  loop_.run();
  if (failure_ || (exit_status_ != 0 && !is_alone())) {
    // The member may lead, or may have won the election meanwhile: another one leads at once then.
    const bool may_lead = !leader_ || member_->leads();
    if (leader_) led_ = led();
    leader_.reset();
    follower_.reset();
    if (may_lead && !is_alone()) log::etcd::resign(config_.cluster, *member_);
    if (failure_) throw Error(*failure_);
  }
  if (!follows_on_) return exit_status_;
  // Clients find the leader, which must not wait for them.
  if (follower_) listeners_.abandon();
  return std::nullopt;
}

std::optional<BootTime> Daemon::led() const {
  if (leader_) return std::min(os::boot_clock(), member_->may_serve_until());
  return follower_ ? std::max(led_, follower_->leader_seen()) : led_;
}

void Daemon::start_store() {
  store_.start({[this](std::function<void()> work) {
                  asio::post(loop_, [this, work = std::move(work)] {
                    const transport::LoopHold hold(&service_.holds(), "store");
                    work();
                    service_.on_answered();
                  });
                },
                [this](log::Sequence last) {
                  if (leader_) return leader_->on_stored(last);
                  on_committed(last);
                  if (follower_) follower_->on_stored(last);
                },
                [this](const Error& error) { store_failed(error); },
                [](const Error& error) { os::log_error("cannot trim the history: {}", error.what()); }});
}

void Daemon::start_following() {
  (void)http_site(config_.http);
  parent_connection_.reset();
  listeners_.listen(endpoints_, config_);
  ::resourced::cluster::Replica replica;
  replica.cluster = log::etcd::read_identity(directory_);
  replica.applied = store_.last_sequence();
  member_ = std::make_unique<log::etcd::Member>(member_settings(options_, config_), std::move(replica));
  follower_ = std::make_unique<Follower>(loop_, config_.cluster, directory_, store_.last_sequence(),
                                         store_.last_event(), *member_, static_cast<Follower::Owner&>(*this));
  service_.stand_by(*follower_);
  follower_->tell_files(log::etcd::file_digests(config_, inventory_));
  inventory_ = {};
  recorded_ = {};
  start_store();
  follower_->start();
}

void Daemon::on_event(log::Record record) {
  service_.follow(record);
  store_.append(std::move(record));
}

// Checks the configuration with the state of the log, as its inventory may be another than the configured
// one.
void Daemon::on_caught_up() {
  try {
    check_start_with(config_);
  } catch (const Error& error) {
    on_failed(error);
  }
}

void Daemon::on_standing(const service::Following::Standing& standing) {
  const std::string line = standing.line();
  tell_ready(line);
  os::log(standing.differs.empty() ? os::Level::info : os::Level::warning, "{}", fmt::make_format_args(line));
}

void Daemon::on_elected() {
  // Posted, as the follower that calls this ends then.
  asio::post(loop_, [this] { lead(); });
}

void Daemon::on_ended(const std::string& why) {
  if (stopping_) return flush_.begin();
  os::log_warning("this daemon lost its lease before it led, and follows the log again: {}", why);
  follows_on_ = true;
  loop_.stop();
}

void Daemon::on_restored(log::Sequence last) {
  if (stopping_) return flush_.begin();
  restored_ = last;
  follows_on_ = true;
  loop_.stop();
}

void Daemon::on_failed(const Error& error) {
  if (!failure_) failure_ = error;
  loop_.stop();
}

void Daemon::lead() {
  // It stops, fails or has lost the lease meanwhile.
  if (stopping_ || follows_on_ || failure_ || !member_->leads()) return;
  try {
    service_.committed().require_known();
    // After a longer time without a leader, the online states in the log say nothing about the present.
    const std::optional<BootTime> led = this->led();
    const Seconds grace = config_.cluster.takeover_grace;
    grace_ = led && os::boot_clock() - *led <= grace ? grace : Seconds(0);
    led_ = led;
    follower_.reset();
    inventory_ = starting_inventory(config_, directory_, fault_);
    parent_connection_ = parent_connection(config_, endpoints_);
    if (store_.last_sequence() != member_->applied()) {
      throw Error(EIO,
                  fmt::format("the store has events up to {}, and the log up to {}: see that the disk has "
                              "room, and start again",
                              store_.last_sequence(), member_->applied()));
    }
    recorded_ = service_.committed().state();
    leader_ = std::make_unique<log::etcd::LeaderLog>(
        std::make_unique<log::etcd::LoopRuntime>(loop_, config_.cluster), *member_, store_,
        [this](std::size_t most, auto take) { store_.copy(most, std::move(take)); });
    log_.go_on_with(*leader_);
    service_.lead(*this, agent_settings(config_));
    member_->tell_files(log::etcd::file_digests(config_, inventory_));
    leader_->start({[this](log::Sequence last) { on_committed(last); },
                    [this](const std::string& why) { depose(why); }});
    start_module();
  } catch (const Error& error) {
    on_failed(error);
  }
}

void Daemon::on_committed(log::Sequence last) {
  service_.on_committed(last);
  if (follower_) return;
  if (host_) host_->on_committed(last);
  if (last >= start_ && !std::exchange(announced_, true)) announce();
  if (reload_ && last >= *reload_) {
    reload_.reset();
    os::notify_ready(status());
  }
}

// Functions that the service requires.

WallTime Daemon::wall_now() const { return os::wall_clock(); }

SteadyTime Daemon::steady_now() const { return os::steady_clock(); }

void Daemon::run_later(Seconds pause, std::function<void()> work) {
  os::run_later(loop_, pause, std::move(work));
}

void Daemon::wake_at(SteadyTime when) {
  if (!stopping_) os::run_at(agent_timer_, when, [this] { service_.on_time(); });
}

proto::topics::Term Daemon::term() const {
  return {static_cast<std::uint64_t>(leader_->epoch()), leader_->cluster()};
}

void Daemon::keep_holders(const std::vector<module::PartitionHolder>& holders) {
  leader_->keep_holders(holders);
}

void Daemon::hand_over(const std::string& successor) {
  if (stopping_) return;
  os::log_info("handing over leadership to {}", successor);
  follows_on_ = true;
  stop(successor);
}

// The status

void Daemon::announce() {
  // Return memory: reading an inventory leaves up to twice the used heap free.
  os::give_back_memory();
  os::log_info("{}", status());
  // Ignore write errors: the daemon serves even if nobody reads its stdout.
  for (const std::string& address : listeners_.addresses())
    std::fputs(fmt::format("listening on {}\n", address).c_str(), stdout);
  std::fflush(stdout);
  tell_ready(status());
}

void Daemon::tell_ready(const std::string& status) {
  std::exchange(is_ready_, true) ? os::notify_status(status) : os::notify_ready(status);
}

std::string Daemon::status() {
  if (follower_) return follower_->standing().line();
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

// The end

void Daemon::take_signal(int number) {
  if (number == SIGHUP) return stopping_ ? signals_.leave(number) : reload_by_signal();
  os::log_info("stopping on signal {}", number);
  if (follows_on_) os::notify_stopping();
  // A stop during a handover ends the process: it does not go on as a standby.
  if (std::exchange(follows_on_, false)) return;
  // A second signal ends the loop without waiting for clients.
  if (stopping_) return loop_.stop();
  stop();
}

void Daemon::depose(const std::string& why) {
  os::log_error("lost leadership: {}", why);
  follows_on_ = true;
  loop_.stop();
}

void Daemon::stop(std::optional<std::string> successor) {
  if (stopping_) return;
  if (!follows_on_) os::notify_stopping();
  take_nothing_in();
  if (host_) host_->stop();
  service_.shut_down();
  if (leader_) return leader_->finish([this] { end_store(); }, std::move(successor));
  if (!follower_) return end_store();
  follower_->resign();
  // If etcd does not answer, the lease ends by itself.
  os::run_later(loop_, config_.cluster.lease_ttl / 2, [this] { flush_.begin(); });
}

void Daemon::end_store() {
  const engine::Engine& engine = service_.engine();
  store_.stop(engine.has_state() ? &engine.module().state() : nullptr, engine.applied());
  // Posted, so that it runs after the store's last commit or failure.
  asio::post(loop_, [this] { flush_.begin(); });
}

void Daemon::store_failed(const Error& error) {
  if (follower_) return on_failed(error);
  os::log_critical("stopping, the store failed: {}", error.what());
  exit_status_ = 1;
  follows_on_ = false;
  os::notify_stopping();
  // A leader ends without answers: etcd may have a change although its client would be told that it failed.
  if (leader_) return loop_.stop();
  take_nothing_in();
  service_.on_store_failed(error);
  if (host_) host_->stop();
  flush_.begin();
}

void Daemon::take_nothing_in() {
  if (std::exchange(stopping_, true)) return;
  parent_.reset();
  if (upkeep_) upkeep_->stop();
  agent_timer_.cancel();
  listeners_.stop_reading();
}

namespace {

// Runs a member of a cluster. A leader that is deposed ends its connections, and follows the log anew.
int run_member(const Options& options, config::Config config) {
  std::optional<BootTime> led;
  while (true) {
    std::optional<log::Sequence> restored;
    {
      Daemon daemon(options, config, led);
      if (const std::optional<int> status = daemon.run()) return *status;
      restored = daemon.restored();
      led = daemon.led();
      config = reloaded(daemon.configuration(), config);
    }
    if (restored) log::install_store(state_directory(options, config), *restored);
  }
}

}  // namespace

int run(const Options& options) {
  config::Config config = load_configuration(options);
  set_up_logging(options.log_level.value_or(config.log.level));
  log_passed_over(config);
  if (config.cluster.is_set()) return run_member(options, std::move(config));
  return Daemon(options, std::move(config), std::nullopt).run().value_or(0);
}

}  // namespace resourced::daemon

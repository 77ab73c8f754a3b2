#include "simulation.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "os/log.hpp"
#include "proto/message.hpp"
#include "state_difference.hpp"

namespace resourced::sim {
namespace {

using nlohmann::json;

constexpr std::size_t trace_length = 40;

nodes::Settings agent_settings(bool returns, bool gate, bool drains_silent) {
  nodes::Settings settings;
  settings.health = {returns ? nodes::HealthReturn::automatic : nodes::HealthReturn::manual, gate};
  if (drains_silent) settings.monitor.drain_after = Seconds(10);
  settings.expect_all = drains_silent;
  settings.monitor.flap_count = 0;
  settings.monitor.torpid_after = Seconds(30);
  settings.monitor.offline_after = Seconds(60);
  return settings;
}

// Few enough to be reached often. Requests of operators remain below that of the loop.
constexpr std::size_t few_bytes = 800;
daemon::service::Bounds bounds(bool pages, bool few_wait, bool reads_beside) {
  daemon::service::Bounds bounds;
  if (pages) bounds.page = 200;
  if (few_wait) bounds.waiting = 1;
  if (reads_beside) bounds.on_loop = 110;
  return bounds;
}

}  // namespace

Simulation::Simulation(std::uint32_t seed)
    : random_(seed),
      with_agents_(chance(0.4)),
      with_partition_(chance(0.4)),
      journal_max_(chance(0.5) ? 40 : 100000),
      bounds_(bounds(chance(0.5), chance(0.5), chance(0.5))),
      ledger_rules_{chance(0.3) ? few_bytes : module::LedgerRules{}.max_bytes, chance(0.5)},
      keep_(chance(0.5) ? 20 : 0),
      roller_(world_of_roller()),
      agent_settings_(agent_settings(chance(0.6), chance(0.5), chance(0.5))) {
  ended_ = Reference(agent_settings_.health.on_return == nodes::HealthReturn::automatic);
  resourced::os::set_log_level(resourced::os::Level::off);
  configuration_ = random_configuration();
  configured_hosts_ = configuration_.hosts;
  start();
}

Simulation::~Simulation() = default;

std::uint32_t Simulation::below(std::uint32_t limit) {
  return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(random_);
}

bool Simulation::chance(double probability) {
  return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
}

void Simulation::note(std::string action) {
  trace_.push_back(std::move(action));
  if (trace_.size() > trace_length) trace_.pop_front();
}

Configuration Simulation::random_configuration() {
  static const std::vector<std::string> hosts{"a", "b", "c", "d", "e"};
  // Sometimes all hosts are new, as hosts that left for good never return.
  if (chance(0.3)) ++generation_;
  Configuration configuration;
  const std::uint32_t count = 2 + below(most_targets - 1);
  for (std::uint32_t i = 0; i < count; ++i)
    configuration.hosts.push_back(
        fmt::format("{}{}", hosts[below(static_cast<std::uint32_t>(hosts.size()))], generation_));
  if (chance(0.3)) configuration.exclude.insert(below(count));
  return configuration;
}

std::string Simulation::some_targets() {
  const auto count = static_cast<std::uint32_t>(configuration_.hosts.size());
  // A host name stands for all targets of the host.
  if (chance(0.2)) return configuration_.hosts[below(count)];
  Reference::Ranks ranks;
  for (std::uint32_t i = 1 + below(3); i > 0; --i) ranks.insert(below(count));
  return idset_of(ranks).encode();
}

// The process.

void Simulation::start() {
  if (disk_.last() > states_begin_) ended_ = state_after(disk_.last());
  before_ = ended_;
  engine::Start input;
  input.state = disk_.state();
  find_hosts(input.state);
  input.command.method =
      input.state.kept_inventory.resources ? module::DefineMethod::kvs : module::DefineMethod::configuration;
  before_.begin(configuration_);
  states_.clear();
  reloads_.clear();
  states_begin_ = disk_.last();
  log_ = std::make_unique<SimLog>(disk_);
  later_.clear();
  timers_.clear();
  loading_.reset();
  wake_.reset();
  notified_ = disk_.last();

  service_ = std::make_unique<daemon::service::Service>(
      *log_, *this,
      daemon::service::Service::Settings{
          .configuration = "{}",
          .journal_max = journal_max_,
          .access = daemon::peers::Access({}, 0),
          .limits = {},
          .agents = with_agents_ ? std::optional(agent_settings_) : std::nullopt,
          .bounds = bounds_,
      });

  const auto& kept = input.state.kept_inventory.resources;
  input.command.inventory = kept ? kept : resources_of(configuration_.hosts);
  input.command.exclude = idset_of(configuration_.exclude);
  if (!with_agents_) input.command.online = input.command.inventory->ranks();
  input.command.partitions = partitions();
  input.ledger = ledger_rules_;
  distrust_clock();
  service_->step(input);
  service_->set_keep(keep_);
  service_->on_defined();
  operator_ = connect();
  // A status waits for the events of the start.
  operator_change_ = service_->engine().applied();
  passed_.clear();
  failing_.clear();
  checked_.clear();
  seen_online_ = service_->engine().module().online();
  check_ledger(before_);
  note(fmt::format("start on {}, exclude {}", fmt::join(configuration_.hosts, ","),
                   fmt::join(configuration_.exclude, ",")));
}

void Simulation::crash() {
  note("crash");
  ++counts_.crashes;
  // Some records that were being written may be on disk.
  if (log_->unsynced() > 0 && chance(0.5))
    log_->sync(below(static_cast<std::uint32_t>(log_->unsynced()) + 1));
  service_.reset();
  transport_.sent.clear();
  transport_.stalled.clear();
  transport_.gone.clear();
  asked_.clear();
  ledger_asked_.clear();
  lines_.clear();
  schedulers_.clear();
  consumers_.clear();
  agents_.clear();
  ousted_.clear();
  kept_.clear();
  roller_client_.reset();
  roller_asked_.clear();
  roller_.lose_daemon();
  if (chance(0.4)) {
    configuration_ = random_configuration();
    configured_hosts_ = configuration_.hosts;
  }
  now_ += 1;
  start();
}

void Simulation::stop() {
  note("stop");
  service_->shut_down();
  log_->sync(log_->unsynced());
  service_->on_committed(disk_.last());
  deliver();
  demand(asked_.empty(), "a request has no answer after an ordered stop");
  crash();
}

void Simulation::fail_store() {
  note("the store fails");
  service_->on_store_failed(Error(EIO, "the disk is full"));
  while (!transport_.sent.empty()) {
    const auto [client, message] = std::move(transport_.sent.front());
    transport_.sent.pop_front();
    if (client != operator_ || asked_.erase(message.matchtag) == 0) continue;
    demand(message.errnum() != 0, "a success after the store has failed");
  }
  // A load whose R is still being read does not depend on the store.
  if (loading_) asked_.erase(*loading_);
  demand(asked_.empty(), "a request has no answer after the store has failed");
  crash();
}

ClientId Simulation::connect() {
  const ClientId client{++last_client_};
  service_->on_client(transport_, client, {0, 0, {}, {}});
  return client;
}

void Simulation::disconnect(ClientId client) {
  transport_.stalled.erase(client);
  transport_.gone.insert(client);
  service_->on_gone(client);
  lines_.erase(client);
  deliver();
}

std::uint32_t Simulation::request(ClientId client, const std::string& topic, const json& payload,
                                  std::uint8_t flags) {
  const std::uint32_t matchtag = ++last_matchtag_;
  if (const auto found = schedulers_.find(client); found != schedulers_.end()) found->second.heard = awake();
  const Standing before = standing();
  service_->on_message(
      client, proto::make_request(topic, matchtag,
                                  payload.is_null() ? nullptr : proto::make_payload(payload.dump()), flags));
  if (service_->large_requests().has(client)) lines_[client].requests.push_back(matchtag);
  take_turns(before);
  return matchtag;
}

// Time, disk and loop.

void Simulation::sync() {
  if (log_->unsynced() > 0) log_->sync(1 + below(static_cast<std::uint32_t>(log_->unsynced())));
  check_log();
}

void Simulation::notify() {
  if (notified_ < disk_.last()) {
    note(fmt::format("committed {}", disk_.last()));
    service_->on_committed(disk_.last());
    const std::string difference = test::state_difference(service_->committed().state(), disk_.state());
    demand(difference.empty(), "reads show another state than the log leads to: " + difference);
    notified_ = disk_.last();
    deliver();
  }
  if (log_->has_questions()) {
    log_->answer();
    service_->on_answered();
    deliver();
  }
  run_due();
}

// Work that is queued meanwhile comes in the next round.
void Simulation::run_due() {
  std::deque<std::function<void()>> due = std::exchange(later_, {});
  while (!timers_.empty() && timers_.begin()->first <= uptime_)
    due.push_back(std::move(timers_.extract(timers_.begin()).mapped()));
  for (const auto& work : due) {
    const Standing before = standing();
    work();
    take_turns(before);
    deliver();
  }
}

void Simulation::set_clock() {
  // A smaller step may be the drift of a clock.
  constexpr double least = 5;
  // No event has a time before 1970. A request names times that are a second earlier than the clock.
  constexpr double earliest = 10;
  const auto ahead = [this] { return now_ - uptime_.time_since_epoch().count(); };
  // The daemon rightly takes a clock that has come back, before its next look, for one that was never set.
  const auto was_shown = [this](double candidate) {
    return std::ranges::any_of(shown_, [&](double before) { return std::abs(candidate - before) < least; });
  };
  latest_ = std::max(latest_, now_);
  if (uptime_ >= unsure_until_) shown_.clear();
  shown_.push_back(ahead());
  double step = 0;
  do {
    const double span = least + below(1000);
    step = chance(0.5) || now_ - span < earliest ? span : -span;
  } while (was_shown(ahead() + step));
  now_ += step;
  distrust_clock();
  note(fmt::format("the clock is set to {}", now_));
}

void Simulation::distrust_clock() {
  distrusted_until_ = uptime_ + Seconds(60);
  unsure_until_ = uptime_ + unsure;
}

void Simulation::pass() {
  const double long_pass = chance(0.2) ? 150 : 20;
  advance(Seconds(chance(0.1) ? long_pass : 0.3));
}

SteadyTime Simulation::next_timer() const {
  SteadyTime next = timers_.empty() ? SteadyTime::max() : timers_.begin()->first;
  for (const auto& [client, scheduler] : schedulers_) {
    if (renews(scheduler)) next = std::min(next, uptime_ + (renewal(scheduler) - awake()));
  }
  return next;
}

void Simulation::advance(Seconds span) {
  const SteadyTime end = uptime_ + span;
  const auto pass_until = [&](SteadyTime time) {
    now_ += std::max(Seconds(0), Seconds(time - uptime_)).count();
    uptime_ = std::max(uptime_, time);
  };
  constexpr std::size_t most_turns = 10000;
  for (std::size_t turns = 0;; ++turns) {
    SteadyTime next = later_.empty() ? next_timer() : uptime_;
    if (wake_) next = std::min(next, *wake_);
    if (next > end) break;
    if (next > uptime_) turns = 0;
    demand(turns < most_turns, "the daemon wakes itself all the time");
    pass_until(next);
    if (wake_ && *wake_ <= uptime_) {
      wake_.reset();
      const std::uint64_t before = service_->engine().applied();
      service_->on_time();
      check_freed(before);
      deliver();
    }
    renew();
    run_due();
  }
  pass_until(end);
}

// Lets all clients read, syncs the log, and runs the loop until nothing is left to be done.
void Simulation::settle() {
  note("settle");
  transport_.stalled.clear();
  service_->on_writable();
  deliver();
  ask_status();
  std::uint64_t received = 0;
  do {
    received = received_;
    // The daemon looks at the clock after each request, and after a load, with which scheduled drains return
    // that are over.
    advance(Seconds(0.01));
    end_leases();
    log_->sync(log_->unsynced());
    check_log();
    notify();
    // The journal limits its rate.
    advance(Seconds(1));
  } while (received_ != received || notified_ < service_->engine().applied() || log_->has_questions());
  demand(asked_.empty(), "a request has no answer, and nothing is left to be done");
  check_answered();
  check_ledger(state_after(disk_.last()));
  check_scheduled(state_after(disk_.last()));
  check_expired(state_after(disk_.last()));
  check_views();
  const std::string difference =
      test::state_difference(service_->committed().state(), service_->engine().module().state());
  demand(difference.empty(), "reads show another state than that of the daemon: " + difference);
}

void Simulation::step() {
  now_ += 0.001;
  uptime_ += Seconds(0.001);
  if (next_timer() <= uptime_) advance(Seconds(0));
  end_leases();
  const std::uint32_t kind = below(1175);
  if (kind < 180) return operate();
  if (kind < 250) return change_ledger();
  if (kind < 295) return ask_status();
  if (kind < 298) return reconfigure();
  if (kind < 300) return set_clock();
  if (kind < 304) return load();
  if (kind < 334) return acquire();
  if (kind < 340) return acquire_again();
  if (kind < 363) return end_scheduler();
  if (kind < 365) return evict();
  if (kind < 385) return follow();
  if (kind < 395) return unfollow();
  if (kind < 470) return say_hello();
  if (kind < 500) return beat();
  if (kind < 520) return report_health();
  if (kind < 535) return end_agent();
  if (kind < 580) return stall();
  if (kind < 740) return sync();
  if (kind < 920) return notify();
  if (kind < 985) return pass();
  if (kind < 994) return settle();
  if (kind < 997) return crash();
  if (kind < 999) return stop();
  if (kind < 1000) return fail_store();
  if (kind < 1150) return roll();
  if (kind < 1170) return hang();
  sleep();
}

void Simulation::run(std::uint64_t steps) {
  try {
    for (std::uint64_t i = 0; i < steps; ++i, ++steps_) step();
    settle();
    counts_.events = disk_.last();
    counts_.rolled = roller_.completed();
  } catch (const std::exception& error) {
    throw Violation(
        fmt::format("step {}: {}\nafter:\n  {}", steps_, error.what(), fmt::join(trace_, "\n  ")));
  }
}

}  // namespace resourced::sim

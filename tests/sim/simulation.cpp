#include "simulation.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "proto/message.hpp"

namespace resourced::sim {
namespace {

using nlohmann::json;
using proto::flag::noresponse;
using proto::flag::streaming;

constexpr std::size_t trace_length = 40;
constexpr std::size_t most_schedulers = 3;
constexpr std::size_t most_consumers = 3;
constexpr std::size_t most_agents = 12;

json hello(const std::string& host, bool checks) {
  json payload{{"hostname", host}, {"R", json::parse(resources_of({host})->encode())}};
  if (checks) payload["health"] = true;
  return payload;
}

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

}  // namespace

Simulation::Simulation(std::uint32_t seed)
    : random_(seed),
      with_agents_(chance(0.4)),
      with_partition_(chance(0.4)),
      journal_max_(chance(0.5) ? 40 : 100000),
      agent_settings_(agent_settings(chance(0.6), chance(0.5), chance(0.5))) {
  ended_ = Reference(agent_settings_.health.on_return == nodes::HealthReturn::automatic);
  spdlog::set_level(spdlog::level::off);
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

void Simulation::demand(bool holds, const std::string& otherwise) const {
  if (!holds) throw Violation(otherwise);
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
  input.command.recorded = disk_.tables.state();
  find_hosts(input.command.recorded);
  input.command.method = input.command.recorded.inventory.resources ? module::DefineMethod::kvs
                                                                    : module::DefineMethod::configuration;
  before_.begin(configuration_);
  states_.clear();
  reloads_.clear();
  states_begin_ = disk_.last();
  log_ = std::make_unique<SimLog>(disk_);
  later_.clear();
  loading_.reset();
  wake_.reset();
  notified_ = disk_.last();

  daemon::service::Service::Settings settings{
      .configuration = "{}",
      .journal_max = journal_max_,
      .access = daemon::peers::Access({}, 0),
      .limits = {},
      .uptime = [this] { return uptime_; },
      .agents = with_agents_ ? std::optional(agent_settings_) : std::nullopt,
      .wake_at = [this](SteadyTime when) { wake_ = when; },
      .reload = nullptr,
      .load = [this](const rset::ResourceSet& resources, const std::string& /*path*/, bool /*force*/,
                     const std::optional<module::Actor>& /*by*/) { take_load(resources); },
      .later = [this](Seconds /*pause*/, std::function<void()> work) { post(std::move(work)); },
  };
  service_ = std::make_unique<daemon::service::Service>(
      *log_, [this] { return wall_time(now_); }, std::move(settings));

  input.command.inventory = input.command.recorded.inventory.resources
                                ? input.command.recorded.inventory.resources
                                : resources_of(configuration_.hosts);
  input.command.exclude = idset_of(configuration_.exclude);
  if (!with_agents_) input.command.online = input.command.inventory->ranks();
  input.partitions = partitions();
  service_->step(input);
  service_->on_defined();
  operator_ = connect();
  passed_.clear();
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
  schedulers_.clear();
  consumers_.clear();
  agents_.clear();
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
  deliver();
}

std::uint32_t Simulation::request(ClientId client, const std::string& topic, const json& payload,
                                  std::uint8_t flags) {
  const std::uint32_t matchtag = ++last_matchtag_;
  service_->on_message(
      client, proto::make_request(topic, matchtag,
                                  payload.is_null() ? nullptr : proto::make_payload(payload.dump()), flags));
  return matchtag;
}

template <class Peers>
auto Simulation::random_peer(Peers& peers) {
  return std::next(peers.begin(), below(static_cast<std::uint32_t>(peers.size())));
}

// Requests of clients.

void Simulation::operate() {
  json payload{{"targets", some_targets()}};
  std::string topic;
  const std::uint32_t kind = below(20);
  if (kind < 7) {
    topic = "resource.drain";
    // Some are those of health and silence.
    static const std::vector<const char*> reasons{"r0", "r1", "health: r0", "lost: silent since then"};
    if (chance(0.7)) payload["reason"] = reasons[below(static_cast<std::uint32_t>(reasons.size()))];
    if (chance(0.5))
      payload["mode"] = std::vector<const char*>{"update", "overwrite", "force-overwrite"}[below(3)];
  } else if (kind < 12) {
    topic = "resource.undrain";
    if (chance(0.5)) payload["mode"] = "force";
  } else if (kind < 17) {
    topic = "resource.property";
    payload["op"] = chance(0.6) ? "add" : "remove";
    payload["name"] = fmt::format("p{}", below(3));
  } else if (kind < 19 || chance(0.9)) {
    topic = "resource.expiration";
    payload = {{"expiration", 5000 + below(3)}};
  } else {
    topic = "resource.shrink";
    payload["targets"] = std::to_string(below(static_cast<std::uint32_t>(configuration_.hosts.size())));
  }
  note(topic + " " + payload.dump());
  const std::uint32_t matchtag = request(operator_, topic, payload);
  asked_.emplace(matchtag, Asked{trace_.back(), false, service_->engine().applied()});
  deliver();
}

// Like the daemon after it has read its configuration again.
void Simulation::reconfigure() {
  configuration_.exclude.clear();
  if (chance(0.7))
    configuration_.exclude.insert(below(static_cast<std::uint32_t>(configuration_.hosts.size())));
  note(fmt::format("reload, exclude {}", fmt::join(configuration_.exclude, ",")));
  const std::uint64_t before = service_->engine().applied();
  module::ReloadCommand command;
  command.exclude = idset_of(configuration_.exclude);
  service_->step(command);
  if (service_->engine().applied() > before) reloads_[before + 1] = {configuration_.exclude};
  service_->set_access(daemon::peers::Access({}, 0));
  if (with_agents_ && chance(0.5)) {
    agent_settings_.health.gate = !agent_settings_.health.gate;
    note(agent_settings_.health.gate ? "health-gate is set" : "health-gate is not set");
    service_->set_agents(agent_settings_);
  }
  deliver();
}

void Simulation::ask_status() {
  note("status");
  const std::uint32_t matchtag = request(operator_, "resource.status", nullptr);
  asked_.emplace(matchtag, Asked{"status", true, service_->engine().applied()});
  deliver();
}

void Simulation::acquire() {
  if (schedulers_.size() >= most_schedulers) return;
  Scheduler scheduler;
  scheduler.client = connect();
  if (with_partition_ && chance(0.5)) scheduler.partition = "left";
  scheduler.is_second = std::ranges::any_of(schedulers_, [&](const auto& other) {
    return other.second.partition == scheduler.partition && !other.second.is_second;
  });
  note(fmt::format("acquire \"{}\"", scheduler.partition));
  json payload = scheduler.partition.empty() ? json() : json{{"partition", scheduler.partition}};
  if (chance(0.7)) payload["allocations"] = true;
  scheduler.matchtag = request(scheduler.client, "resource.acquire", payload, streaming);
  scheduler.seen = service_->engine().applied();
  schedulers_.emplace(scheduler.client, std::move(scheduler));
  deliver();
}

void Simulation::end_scheduler() {
  if (schedulers_.empty()) return;
  const auto found = random_peer(schedulers_);
  const Scheduler scheduler = found->second;
  schedulers_.erase(found);
  if (chance(0.5)) {
    note(fmt::format("cancel of \"{}\"", scheduler.partition));
    request(scheduler.client, "resource.acquire-cancel", {{"matchtag", scheduler.matchtag}}, noresponse);
    deliver();
  }
  note(fmt::format("disconnect of \"{}\"", scheduler.partition));
  disconnect(scheduler.client);
}

// Requests of any scheduler, with any ids and targets, so that many are refused. All cores of an allocation
// are the same on its targets.
void Simulation::change_ledger() {
  if (schedulers_.empty()) return;
  const ClientId client = random_peer(schedulers_)->first;
  const std::string id = fmt::format("j{}", below(12));
  const auto count = static_cast<std::uint32_t>(configuration_.hosts.size());
  Reference::Ranks ranks;
  for (std::uint32_t i = 1 + below(2); i > 0; --i) ranks.insert(below(count));
  json payload{{"id", id}};
  const bool allocs = chance(0.6);
  if (allocs) {
    const text::IdSet cores = text::IdSet::range(below(3), 3);
    text::Hostlist hosts;
    for (const unsigned rank : ranks) hosts.append(configuration_.hosts[rank]);
    const rset::ResourceSet resources({{idset_of(ranks), chance(0.5) ? cores : text::IdSet{below(4)}, {}}},
                                      hosts);
    payload["R"] = resources.to_json();
  } else if (chance(0.4)) {
    payload["ranks"] = idset_of(ranks).encode();
  }
  const char* const topic = allocs ? "resource.alloc" : "resource.free";
  note(fmt::format("{} {}", topic, payload.dump()));
  const std::uint32_t matchtag = request(client, topic, payload);
  ledger_asked_.emplace(matchtag, service_->engine().applied());
  deliver();
}

void Simulation::follow() {
  if (consumers_.size() >= most_consumers) return;
  note("journal");
  Consumer consumer;
  consumer.client = connect();
  consumer.matchtag = request(consumer.client, "resource.journal", {{"allocations", true}}, streaming);
  consumers_.emplace(consumer.client, consumer);
  deliver();
}

void Simulation::unfollow() {
  if (consumers_.empty()) return;
  note("journal ends");
  const auto found = random_peer(consumers_);
  const ClientId client = found->first;
  consumers_.erase(found);
  disconnect(client);
}

void Simulation::say_hello() {
  if (!with_agents_ || agents_.size() >= most_agents) return;
  const std::string& host =
      configuration_.hosts[below(static_cast<std::uint32_t>(configuration_.hosts.size()))];
  Agent agent{connect(), 0, host, chance(0.7)};
  note(fmt::format("hello of {}{}", host, agent.checks ? ", which runs checks" : ""));
  if (has_one_target(host)) {
    passed_.erase(host);
    for (auto& [client, other] : agents_) other.checks = other.checks && other.host != host;
  }
  agent.matchtag = request(agent.client, "resource.agent", hello(host, agent.checks), streaming);
  agents_.emplace(agent.client, agent);
  deliver();
}

bool Simulation::has_one_target(const std::string& host) const {
  return std::ranges::count(configuration_.hosts, host) == 1;
}

void Simulation::disown_agents() {
  passed_.clear();
  for (auto& [client, agent] : agents_) agent.checks = false;
}

// Also of agents that run no checks, or were replaced: those are refused.
void Simulation::report_health() {
  if (agents_.empty()) return;
  const Agent& agent = random_peer(agents_)->second;
  const bool passes = chance(0.6);
  note(fmt::format("a check on {} {}", agent.host, passes ? "passes" : "fails"));
  if (agent.checks && passes) passed_.insert(agent.host);
  if (agent.checks && !passes && has_one_target(agent.host)) passed_.erase(agent.host);
  json payload{{"matchtag", agent.matchtag}, {"status", passes ? 0 : 1}};
  if (chance(0.5)) payload["reason"] = fmt::format("r{}", below(2));
  request(agent.client, "resource.agent-health", payload, noresponse);
  deliver();
}

void Simulation::beat() {
  if (agents_.empty()) return;
  request(random_peer(agents_)->first, "resource.agent-beat", nullptr, noresponse);
  deliver();
}

void Simulation::end_agent() {
  if (agents_.empty()) return;
  const auto found = random_peer(agents_);
  const Agent agent = found->second;
  agents_.erase(found);
  note("an agent ends");
  if (chance(0.5)) {
    request(agent.client, "resource.agent-cancel", {{"matchtag", agent.matchtag}}, noresponse);
    deliver();
  }
  disconnect(agent.client);
}

void Simulation::stall() {
  const auto toggle = [&](auto& peers) {
    if (peers.empty()) return;
    const ClientId client = random_peer(peers)->first;
    note(fmt::format("client {} {}", static_cast<std::uint64_t>(client),
                     transport_.stalled.contains(client) ? "reads again" : "stalls"));
    if (!transport_.stalled.insert(client).second) {
      transport_.stalled.erase(client);
      service_->on_writable();
      deliver();
    }
  };
  if (chance(0.6)) {
    toggle(schedulers_);
  } else {
    toggle(consumers_);
  }
}

// Time, disk and loop.

void Simulation::sync() {
  if (log_->unsynced() > 0) log_->sync(1 + below(static_cast<std::uint32_t>(log_->unsynced())));
}

void Simulation::notify() {
  if (notified_ < disk_.last()) {
    note(fmt::format("committed {}", disk_.last()));
    service_->on_committed(disk_.last());
    notified_ = disk_.last();
    deliver();
  }
  if (log_->has_questions()) {
    log_->answer();
    service_->on_answered();
    deliver();
  }
  run_later();
}

void Simulation::run_later() {
  for (std::size_t count = later_.size(); count > 0; --count) {
    const auto work = std::move(later_.front());
    later_.pop_front();
    work();
    deliver();
  }
}

void Simulation::set_clock() {
  constexpr double most = 1000;
  now_ += most * (static_cast<double>(below(2000)) / 1000 - 1);
  note(fmt::format("the clock is set to {}", now_));
}

void Simulation::pass() {
  const SteadyTime end = uptime_ + Seconds(chance(0.1) ? 20.0 : 0.3);
  while (wake_ && *wake_ <= end) {
    uptime_ = std::max(uptime_, *std::exchange(wake_, std::nullopt));
    service_->on_time();
    deliver();
  }
  uptime_ = end;
}

// Lets all clients read, syncs the log, and runs the loop until nothing is left to be done.
void Simulation::settle() {
  note("settle");
  transport_.stalled.clear();
  service_->on_writable();
  deliver();
  do {
    log_->sync(log_->unsynced());
    notify();
    // Advance the time, since the journal limits its rate.
    uptime_ += Seconds(1);
  } while (notified_ < service_->engine().applied() || log_->has_questions() || !later_.empty());
  demand(asked_.empty(), "a request has no answer, and nothing is left to be done");
  check_ledger(state_after(disk_.last()));
  check_views();
}

void Simulation::step() {
  now_ += 0.001;
  uptime_ += Seconds(0.001);
  const std::uint32_t kind = below(1000);
  if (kind < 180) return operate();
  if (kind < 250) return change_ledger();
  if (kind < 295) return ask_status();
  if (kind < 298) return reconfigure();
  if (kind < 300) return set_clock();
  if (kind < 304) return load();
  if (kind < 340) return acquire();
  if (kind < 365) return end_scheduler();
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
  fail_store();
}

void Simulation::run(std::uint64_t steps) {
  try {
    for (std::uint64_t i = 0; i < steps; ++i, ++steps_) step();
    settle();
    counts_.events = disk_.last();
  } catch (const std::exception& error) {
    throw Violation(
        fmt::format("step {}: {}\nafter:\n  {}", steps_, error.what(), fmt::join(trace_, "\n  ")));
  }
}

}  // namespace resourced::sim

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
#include "proto/rpc.hpp"

namespace resourced::sim {
namespace {

using nlohmann::json;
using proto::flag::noresponse;
using proto::flag::streaming;

constexpr std::size_t trace_length = 40;
constexpr std::uint32_t most_targets = 9;
constexpr std::size_t most_schedulers = 3;
constexpr std::size_t most_consumers = 3;
constexpr std::size_t most_agents = 12;

std::shared_ptr<const ResourceSet> resources_of(const std::vector<std::string>& hosts) {
  const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(hosts.size() - 1));
  Hostlist nodelist;
  for (const std::string& host : hosts) nodelist.append(Hostlist::parse(host));
  return std::make_shared<const ResourceSet>(std::vector<ResourceGroup>{{ranks, IdSet::range(0, 3), IdSet{}}},
                                             std::move(nodelist));
}

IdSet idset_of(const Reference::Ranks& ranks) {
  IdSet ids;
  for (const unsigned rank : ranks) ids.insert(rank);
  return ids;
}

Reference::Ranks shared(const Reference::Ranks& a, const Reference::Ranks& b) {
  Reference::Ranks both;
  std::ranges::set_intersection(a, b, std::inserter(both, both.end()));
  return both;
}

Reference::Ranks without(const Reference::Ranks& a, const Reference::Ranks& b) {
  Reference::Ranks rest;
  std::ranges::set_difference(a, b, std::inserter(rest, rest.end()));
  return rest;
}

std::map<std::string, Reference::Ranks> properties_of(const Reference& state, const Reference::Ranks& ranks) {
  std::map<std::string, Reference::Ranks> properties;
  for (const auto& [name, all] : state.properties()) {
    if (auto some = shared(all, ranks); !some.empty()) properties.emplace(name, std::move(some));
  }
  return properties;
}

json hello(const std::string& host) {
  return {{"hostname", host}, {"R", json::parse(resources_of({host})->encode())}};
}

nodes::Settings agent_settings() {
  nodes::Settings settings;
  settings.monitor.flap_count = 0;
  settings.monitor.torpid_after = 30;
  settings.monitor.offline_after = 60;
  return settings;
}

}  // namespace

Simulation::Simulation(std::uint32_t seed)
    : random_(seed),
      with_agents_(chance(0.4)),
      with_partition_(chance(0.4)),
      journal_max_(chance(0.5) ? 40 : 100000) {
  spdlog::set_level(spdlog::level::off);
  configuration_ = random_configuration();
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
  // Now and then all hosts are new, as those that left for good never return.
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
  // By name a host stands for all of its targets.
  if (chance(0.2)) return configuration_.hosts[below(count)];
  Reference::Ranks ranks;
  for (std::uint32_t i = 1 + below(3); i > 0; --i) ranks.insert(below(count));
  return idset_of(ranks).encode();
}

// The process.

void Simulation::start() {
  before_ = Reference(state_after(disk_.last()));
  before_.begin(configuration_);
  states_.clear();
  states_begin_ = disk_.last();
  log_ = std::make_unique<SimLog>(disk_);
  later_.clear();
  wake_.reset();
  notified_ = disk_.last();

  daemon::service::Service::Settings settings{
      .configuration = "{}",
      .journal_max = journal_max_,
      .access = daemon::peers::Access({}, 0),
      .limits = {},
      .uptime = [this] { return uptime_; },
      .agents = with_agents_ ? std::optional(agent_settings()) : std::nullopt,
      .wake_at = [this](double when) { wake_ = when; },
      .reload = nullptr,
      .load = nullptr,
      .later = [this](double /*seconds*/, std::function<void()> work) { later_.push_back(std::move(work)); },
  };
  service_ = std::make_unique<daemon::service::Service>(
      *log_, [this] { return now_; }, std::move(settings));

  engine::Start input;
  input.command.inventory = resources_of(configuration_.hosts);
  input.command.exclude = idset_of(configuration_.exclude);
  if (!with_agents_) input.command.online = input.command.inventory->ranks();
  input.command.recorded = disk_.tables.state();
  if (with_partition_) {
    const auto half = static_cast<IdSet::Id>(configuration_.hosts.size() / 2);
    input.partitions.push_back({"left", IdSet::range(0, half - 1), {}});
  }
  service_->step(input);
  service_->on_defined();
  operator_ = connect();
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
  schedulers_.clear();
  consumers_.clear();
  agents_.clear();
  if (chance(0.4)) configuration_ = random_configuration();
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
    if (chance(0.7)) payload["reason"] = fmt::format("r{}", below(3));
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
  const json payload = scheduler.partition.empty() ? json() : json{{"partition", scheduler.partition}};
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

void Simulation::follow() {
  if (consumers_.size() >= most_consumers) return;
  note("journal");
  Consumer consumer;
  consumer.client = connect();
  consumer.matchtag = request(consumer.client, "resource.journal", nullptr, streaming);
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
  note("hello of " + host);
  Agent agent{connect(), 0};
  agent.matchtag = request(agent.client, "resource.agent", hello(host), streaming);
  agents_.emplace(agent.client, agent);
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

void Simulation::pass() {
  const double end = uptime_ + (chance(0.1) ? 20.0 : 0.3);
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
    // The journal limits its pace, so time must pass.
    uptime_ += 1;
  } while (notified_ < service_->engine().applied() || log_->has_questions() || !later_.empty());
  demand(asked_.empty(), "a request has no answer, and nothing is left to be done");
  check_views();
}

void Simulation::step() {
  now_ += 0.001;
  uptime_ += 0.001;
  const std::uint32_t kind = below(1000);
  if (kind < 250) return operate();
  if (kind < 300) return ask_status();
  if (kind < 340) return acquire();
  if (kind < 365) return end_scheduler();
  if (kind < 385) return follow();
  if (kind < 395) return unfollow();
  if (kind < 470) return say_hello();
  if (kind < 520) return beat();
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

// Messages to clients.

const Reference& Simulation::state_after(std::uint64_t sequence) {
  if (sequence <= states_begin_) return before_;
  while (states_begin_ + states_.size() < sequence) {
    Reference next = states_.empty() ? before_ : states_.back();
    next.apply(json::parse(disk_.records.at(states_begin_ + states_.size()).text));
    states_.push_back(std::move(next));
  }
  return states_.at(sequence - states_begin_ - 1);
}

void Simulation::deliver() {
  while (!transport_.sent.empty()) {
    const auto [client, message] = std::move(transport_.sent.front());
    transport_.sent.pop_front();
    receive(client, message);
  }
}

void Simulation::receive(ClientId client, const proto::Message& message) {
  if (client == operator_) {
    const auto asked = asked_.extract(message.matchtag);
    demand(!asked.empty(), "a response that nobody waits for");
    receive(asked.mapped(), message);
  } else if (const auto scheduler = schedulers_.find(client); scheduler != schedulers_.end()) {
    receive(scheduler->second, message);
  } else if (const auto consumer = consumers_.find(client); consumer != consumers_.end()) {
    receive(consumer->second, message);
  } else if (agents_.contains(client) && message.errnum() != 0) {
    // Another agent has its place, or its target has left.
    agents_.erase(client);
  }
}

void Simulation::receive(const Asked& asked, const proto::Message& message) {
  ++counts_.responses;
  demand(disk_.last() >= asked.after,
         fmt::format("answered before event {} was on disk: {}", asked.after, asked.what));
  if (asked.is_status) check_status(json::parse(message.text()), state_after(asked.after));
}

void Simulation::check_status(const json& status, const Reference& state) const {
  std::map<unsigned, std::string> drained;
  for (const auto& [ranks, drain] : status.at("drain").items()) {
    for (const unsigned rank : parse_ranks(ranks)) drained.emplace(rank, drain.at("reason"));
  }
  demand(drained == state.drained(), "status has other drains than the journal: " + status.dump());
  const auto ranks = [&](const char* key) { return parse_ranks(status.at(key).get<std::string>()); };
  const Reference::Ranks present = state.present();
  demand(ranks("online") == shared(state.online(), present), "status has others online: " + status.dump());
  demand(ranks("torpid") == shared(state.torpid(), present), "status has others torpid: " + status.dump());
  demand(ranks("exclude") == shared(state.excluded(), present), "status excludes others: " + status.dump());
  const View whole(json{{"resources", status.at("R")}, {"up", ""}});
  demand(whole.resources == present, "status has other targets than the journal: " + status.dump());
  demand(whole.properties == properties_of(state, present), "status has other properties: " + status.dump());
  demand(whole.expiration == state.expiration(), "status has another expiration: " + status.dump());
}

void Simulation::receive(Scheduler& scheduler, const proto::Message& message) {
  demand(disk_.last() >= scheduler.seen, "an acquire was answered before the state was on disk");
  if (message.errnum() != 0) {
    demand(message.errnum() == (scheduler.is_second ? EBUSY : ECANCELED),
           fmt::format("an acquire ended with {}: {}", message.errnum(), message.text()));
    schedulers_.erase(scheduler.client);
    return;
  }
  demand(!scheduler.is_second, "a second scheduler has what another one holds");
  const json body = json::parse(message.text());
  if (!scheduler.view) {
    scheduler.view.emplace(body);
    const Reference& state = state_after(scheduler.seen);
    View& view = *scheduler.view;
    Reference::Ranks all = without(state.present(), state.excluded());
    if (with_partition_) {
      Reference::Ranks left;
      for (unsigned rank = 0; rank < configuration_.hosts.size() / 2; ++rank) left.insert(rank);
      all = scheduler.partition.empty() ? without(all, left) : shared(all, left);
    }
    demand(view.resources == all, "other resources than the journal has: " + body.dump());
    demand(view.up == shared(state.available(), all), "others up than in the journal: " + body.dump());
    demand(view.properties == properties_of(state, all), "other properties: " + body.dump());
    return;
  }
  ++counts_.deltas;
  View& view = *scheduler.view;
  view.apply(body);
  // The view is the state after some event on disk, which is not earlier than before.
  for (std::uint64_t sequence = scheduler.seen; sequence <= disk_.last(); ++sequence) {
    const Reference& state = state_after(sequence);
    if (view.up == shared(state.available(), view.resources) &&
        view.resources == shared(state.present(), view.resources) &&
        view.properties == properties_of(state, view.resources) && view.expiration == state.expiration()) {
      scheduler.seen = sequence;
      return;
    }
  }
  demand(false, "a change that leads to no state on disk: " + body.dump());
}

void Simulation::receive(Consumer& consumer, const proto::Message& message) {
  if (message.errnum() != 0) {
    demand(message.errnum() == EOVERFLOW || message.errnum() == ENODATA,
           fmt::format("a journal ended with {}: {}", message.errnum(), message.text()));
    consumers_.erase(consumer.client);
    return;
  }
  const json body = json::parse(message.text());
  for (const json& event : body.at("events")) {
    if (event.at("name") == "truncate") {
      demand(consumer.next == 1, "a truncate in the middle of a journal");
      consumer.next.reset();
      continue;
    }
    if (!consumer.next) {
      // The last equal event, as the first one of the journal is among the last journal-max.
      std::uint64_t found = disk_.last();
      while (found > 0 && json::parse(disk_.records[found - 1].text) != event) --found;
      consumer.next = found;
    }
    demand(*consumer.next >= 1 && *consumer.next <= disk_.last(),
           "an event that is not on disk: " + event.dump());
    const daemon::store::Record& record = disk_.records[*consumer.next - 1];
    demand(event == json::parse(record.text), fmt::format("event {} of the journal is {}, on disk {}",
                                                          *consumer.next, event.dump(), record.text));
    if (record.resources && body.at("events").size() == 1)
      demand(body.at("R") == json::parse(*record.resources), "another R beside a definition");
    ++*consumer.next;
  }
}

void Simulation::check_views() {
  const Reference& state = state_after(disk_.last());
  Reference::Ranks given;
  for (const auto& [client, scheduler] : schedulers_) {
    demand(scheduler.view.has_value(), "an acquire without a response");
    const View& view = *scheduler.view;
    demand(view.resources == shared(state.present(), view.resources), "a scheduler has targets that left");
    demand(view.up == shared(state.available(), view.resources), "a scheduler has not heard of all changes");
    demand(view.properties == properties_of(state, view.resources), "a scheduler has other properties");
    demand(view.expiration == state.expiration(), "a scheduler has another expiration");
    demand(shared(given, view.resources).empty(), "a target is held twice");
    given.insert(view.resources.begin(), view.resources.end());
  }
  for (const auto& [client, consumer] : consumers_)
    demand(!consumer.next || *consumer.next == disk_.last() + 1, "a journal that is not at its end");
}

}  // namespace resourced::sim

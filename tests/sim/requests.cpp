// Requests of clients: operators, schedulers, consumers of the journal, agents.
#include <algorithm>
#include <cerrno>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulation.hpp"

namespace resourced::sim {
namespace {

using nlohmann::json;
using proto::flag::noresponse;
using proto::flag::streaming;

constexpr std::size_t most_schedulers = 3;
constexpr std::size_t most_consumers = 3;
constexpr std::size_t most_agents = 12;

json hello(const std::string& host, bool checks) {
  json payload{{"hostname", host}, {"R", json::parse(resources_of({host})->encode())}};
  if (checks) payload["health"] = true;
  return payload;
}

}  // namespace

void Simulation::operate() {
  json payload{{"targets", some_targets()}};
  std::string topic;
  const std::uint32_t kind = below(21);
  if (kind < 7) {
    topic = "resource.drain";
    // Some are those of health and silence.
    static const std::vector<const char*> reasons{"r0", "r1", "health: r0", "lost: silent since then"};
    if (chance(0.7)) payload["reason"] = reasons[below(static_cast<std::uint32_t>(reasons.size()))];
    if (chance(0.5))
      payload["mode"] = std::vector<const char*>{"update", "overwrite", "force-overwrite"}[below(3)];
    // By times that pass soon, much later, or when the clock is set.
    static const std::vector<double> spans{0.01, 0.3, 5, 300, 2000};
    const auto span = [&] { return spans[below(static_cast<std::uint32_t>(spans.size()))]; };
    double begin = now_;
    if (chance(0.4)) payload["from"] = begin += span();
    if (chance(0.4)) payload["until"] = begin + span();
    if (chance(0.2)) payload["ticket"] = "t";
  } else if (kind < 8) {
    topic = "resource.drain-cancel";
    const auto scheduled = service_->engine().module().scheduled_drains().groups();
    if (!scheduled.empty() && chance(0.7)) {
      const auto& [drain, ranks] =
          *std::next(scheduled.begin(), below(static_cast<std::uint32_t>(scheduled.size())));
      payload = {{"targets", ranks.encode()}, {"from", to_number(drain.timestamp)}};
    }
  } else if (kind < 12) {
    topic = "resource.undrain";
    if (chance(0.5)) payload["mode"] = "force";
  } else if (kind < 17) {
    topic = "resource.property";
    payload["op"] = chance(0.6) ? "add" : "remove";
    payload["name"] = fmt::format("p{}", below(3));
  } else if (kind == 17) {
    // The request names hosts of the configuration, as a loaded R may lack them.
    topic = "resource.forget";
    payload = {{"hosts", configured_hosts_[below(static_cast<std::uint32_t>(configured_hosts_.size()))]}};
  } else if (kind < 20 || chance(0.9)) {
    topic = "resource.expiration";
    payload = {{"expiration", 5000 + below(3)}};
  } else {
    topic = "resource.shrink";
    failing_.clear();
    payload["targets"] = std::to_string(below(static_cast<std::uint32_t>(configuration_.hosts.size())));
  }
  note(topic + " " + payload.dump());
  const std::uint64_t before = service_->engine().applied();
  const std::uint32_t matchtag = request(operator_, topic, payload);
  if (service_->engine().applied() > before) operator_change_ = service_->engine().applied();
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
  // Drains that end by now come before the definition.
  if (const auto sequence = log_->last_definition(); sequence > before)
    reloads_[sequence] = {configuration_.exclude};
  service_->set_access(daemon::peers::Access({}, 0));
  if (chance(0.3)) {
    ledger_rules_.free_expired = !ledger_rules_.free_expired;
    note(ledger_rules_.free_expired ? "free-expired is set" : "free-expired is not set");
    service_->set_ledger(ledger_rules_);
    unsure_until_ = uptime_ + unsure;
  }
  if (with_agents_ && chance(0.5)) {
    agent_settings_.health.gate = !agent_settings_.health.gate;
    note(agent_settings_.health.gate ? "health-gate is set" : "health-gate is not set");
    service_->set_agents(agent_settings_);
  }
  deliver();
}

void Simulation::ask_status() {
  note("status");
  // The answer shows the events that were on disk at the time of the question, and the operator's own
  // changes.
  const std::uint64_t shown = std::max(notified_, operator_change_);
  const std::uint32_t matchtag = request(operator_, "resource.status", nullptr);
  asked_.emplace(matchtag, Asked{"status", true, shown});
  deliver();
}

bool Simulation::may_have_ended(const Scheduler& scheduler) {
  return scheduler.is_second && scheduler.waits && was_empty(scheduler, service_->engine().applied());
}

void Simulation::acquire() {
  if (schedulers_.size() >= most_schedulers) return;
  // How many wait is not known then.
  if (bounds_.waiting < most_schedulers &&
      std::ranges::any_of(schedulers_, [&](const auto& other) { return may_have_ended(other.second); }))
    return;
  Scheduler scheduler;
  scheduler.client = connect();
  scheduler.partition = any_partition();
  end_kept();
  // It takes over what is kept for it, or what another connection of it still has.
  const auto own = std::ranges::find_if(schedulers_, [&](const auto& other) {
    return other.second.partition == scheduler.partition && !other.second.token.empty() &&
           !other.second.is_second && other.second.ended == 0;
  });
  const auto kept = kept_.find(scheduler.partition);
  const bool comes_back = (own != schedulers_.end() || kept != kept_.end()) && chance(0.5);
  json payload = scheduler.partition.empty() ? json() : json{{"partition", scheduler.partition}};
  if (comes_back) {
    scheduler.token = kept == kept_.end() ? own->second.token : kept->second.token;
    if (kept == kept_.end()) own->second.ended = ECONNABORTED;
    kept_.erase(scheduler.partition);
  } else {
    scheduler.is_second = is_taken(scheduler.partition);
    if (chance(0.5)) scheduler.token = fmt::format("{:032x}", ++last_token_);
  }
  if (!scheduler.token.empty()) payload["holder"] = scheduler.token;
  scheduler.since = now_;
  if (chance(0.7)) payload["allocations"] = true;
  if (chance(0.6)) {
    // A name that the daemon does not know is no error.
    json& names = payload["extensions"] = json::array({"unknown"});
    scheduler.extensions.emplace();
    for (const char* const name : {"ledger", "scheduled", "cause"}) {
      if (chance(0.2)) continue;
      names.push_back(name);
      scheduler.extensions->insert(name);
    }
    if (scheduler.has("ledger")) scheduler.ledger.emplace();
  }
  if (chance(0.7)) payload["wait"] = scheduler.waits = true;
  if (chance(0.5)) {
    static const std::vector<double> leases{5, 12, 40};
    payload["lease"] = leases[below(static_cast<std::uint32_t>(leases.size()))];
    // The daemon refuses it at once otherwise.
    if (!scheduler.is_second || scheduler.waits) scheduler.lease = Seconds(payload["lease"].get<double>());
  }
  scheduler.heard = awake();
  scheduler.turn = ++last_turn_of_scheduler_;
  note(fmt::format("acquire {}", payload.dump()));
  scheduler.matchtag = request(scheduler.client, "resource.acquire", payload, streaming);
  scheduler.seen = service_->engine().applied();
  // Each of the others has what it wants, or waits for it.
  const auto others = std::ranges::count_if(schedulers_, [](const auto& other) {
    return other.second.ended == 0 && (!other.second.is_second || other.second.waits);
  });
  const std::size_t holders = service_->engine().acquisition().holders() - kept_.size();
  const bool waits = scheduler.is_second && scheduler.waits &&
                     !part_of(scheduler.partition, state_after(scheduler.seen)).empty();
  if (waits && static_cast<std::size_t>(others) - holders >= bounds_.waiting) {
    scheduler.ended = ENOBUFS;
    ++counts_.bounded;
  }
  schedulers_.emplace(scheduler.client, std::move(scheduler));
  deliver();
}

void Simulation::acquire_again() {
  if (schedulers_.empty()) return;
  const auto& [client, scheduler] = *random_peer(schedulers_);
  const bool is_refused = scheduler.ended != 0 || (scheduler.is_second && !scheduler.waits);
  if (is_refused || scheduler.hangs || lines_.contains(client) || may_have_ended(scheduler)) return;
  json payload{{"partition", scheduler.partition}};
  const bool waits = chance(0.7);
  if (waits) payload["wait"] = true;
  note(fmt::format("acquire again {}", payload.dump()));
  const std::uint32_t matchtag = request(client, "resource.acquire", payload, streaming);
  ledger_asked_.emplace(matchtag, Change{.client = client,
                                         .topic = "resource.acquire",
                                         .payload = payload,
                                         .refusal = waits ? EDEADLK : EBUSY,
                                         .after = service_->engine().applied()});
  deliver();
}

void Simulation::end_scheduler() {
  if (schedulers_.empty()) return;
  const auto found = random_peer(schedulers_);
  const Scheduler scheduler = found->second;
  schedulers_.erase(found);
  // One that takes its leave is not expected back. A scheduler that waits may have been served and not told
  // yet, so that a lost connection of it would be kept or not.
  const bool may_hold = scheduler.is_second && scheduler.waits && !scheduler.token.empty();
  const bool leaves = may_hold || (!scheduler.hangs && chance(0.6));
  if (leaves) {
    const bool cancels = chance(0.7);
    note(fmt::format("{} of \"{}\"", cancels ? "cancel" : "farewell", scheduler.partition));
    if (cancels) {
      request(scheduler.client, "resource.acquire-cancel", {{"matchtag", scheduler.matchtag}}, noresponse);
    } else {
      request(scheduler.client, "resource.disconnect", nullptr, noresponse);
    }
    deliver();
  }
  note(fmt::format("end of the connection of \"{}\"", scheduler.partition));
  if (!leaves && keep_ > Seconds(0) && !scheduler.token.empty() && !scheduler.is_second &&
      scheduler.ended == 0)
    kept_[scheduler.partition] = {scheduler.token, scheduler.since, uptime_ + keep_};
  disconnect(scheduler.client);
}

bool Simulation::is_taken(const std::string& partition) const {
  return kept_.contains(partition) || std::ranges::any_of(schedulers_, [&](const auto& other) {
           const Scheduler& one = other.second;
           return one.partition == partition && one.ended == 0 && (!one.is_second || one.waits);
         });
}

void Simulation::end_kept() {
  if (std::erase_if(kept_, [this](const auto& one) { return one.second.until <= uptime_; }) == 0) return;
  note("what was kept is free");
  // The timer queues the work that frees it, and this one what serves the next scheduler.
  advance(Seconds(0));
}

void Simulation::evict() {
  end_kept();
  const std::string partition = any_partition();
  const auto kept = kept_.find(partition);
  const auto holder = std::ranges::find_if(schedulers_, [&](const auto& other) {
    const Scheduler& one = other.second;
    return one.partition == partition && !one.is_second && one.ended == 0 && one.since > 0;
  });
  // The time is not known of what a scheduler held that had waited for it.
  const bool is_kept = kept != kept_.end() && kept->second.since > 0;
  if (!is_kept && holder == schedulers_.end()) return;
  note(fmt::format("eviction from \"{}\"", partition));
  // The time of an earlier acquisition evicts nobody.
  const bool is_stale = chance(0.2);
  json payload{{"since", (is_kept ? kept->second.since : holder->second.since) - (is_stale ? 1 : 0)}};
  if (!partition.empty()) payload["partition"] = partition;
  const std::uint32_t matchtag = request(operator_, "resource.evict", payload);
  asked_.emplace(matchtag, Asked{"eviction", false, 0, is_stale ? ESTALE : 0});
  if (is_kept && !is_stale) {
    kept_.erase(kept);
  } else if (!is_stale) {
    holder->second.ended = ECONNABORTED;
  }
  deliver();
}

void Simulation::follow() {
  if (consumers_.size() >= most_consumers) return;
  note("journal");
  Consumer consumer;
  consumer.client = connect();
  consumer.matchtag =
      request(consumer.client, "resource.journal", {{"allocations", true}, {"own", true}}, streaming);
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
  std::string host = configuration_.hosts[below(static_cast<std::uint32_t>(configuration_.hosts.size()))];
  ClientId client{};
  // One that has lost its place to another agent of its host's name comes back, on the connection that it
  // had.
  const bool comes_back = !ousted_.empty() && chance(0.4);
  if (comes_back) {
    const auto found = random_peer(ousted_);
    client = found->first;
    host = found->second;
    ousted_.erase(found);
  } else {
    client = connect();
  }
  Agent agent{client, 0, host, chance(0.7)};
  note(fmt::format("hello of {}{}{}", host, agent.checks ? ", which runs checks" : "",
                   comes_back ? ", which was replaced" : ""));
  if (has_one_target(host)) {
    passed_.erase(host);
    checked_.erase(host);
    if (!agent.checks) failing_.erase(host);
    if (agent.checks) checked_.insert(host);
    for (auto& [id, other] : agents_) other.checks = other.checks && other.host != host;
  }
  while_rivals_return_nothing([&] {
    agent.matchtag = request(agent.client, "resource.agent", hello(host, agent.checks), streaming);
    agents_.emplace(agent.client, agent);
    deliver();
  });
}

// Time does not pass meanwhile, and no operator asks for anything.
void Simulation::while_rivals_return_nothing(const std::function<void()>& work) {
  const daemon::service::Service& service = *service_;
  const text::IdSet rivals = service.engine().nodes().rivals().targets();
  const text::IdSet drained = rivals & service.engine().module().drains().ranks();
  // A load leaves targets online that the gate would keep down from then on.
  const text::IdSet held =
      (rivals & service.engine().nodes().health().held()) - service.engine().module().online();
  work();
  const text::IdSet still = rivals & service.engine().nodes().rivals().targets();
  const module::Module& module = service.engine().module();
  demand(module.drains().ranks().includes(drained & still),
         fmt::format("one of two rivals has returned {}", (drained & still).encode()));
  demand(!module.online().intersects(held & still),
         fmt::format("one of two rivals has opened the gate for {}", (held & still).encode()));
}

bool Simulation::has_one_target(const std::string& host) const {
  return std::ranges::count(configuration_.hosts, host) == 1;
}

void Simulation::disown_agents() {
  passed_.clear();
  checked_.clear();
  failing_.clear();
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
  // A node that stays unhealthy is drained once, whatever its checks print.
  const std::string host = agent.host;
  const bool counts = agent.checks && has_one_target(host);
  const bool fails_still = counts && !passes && failing_.contains(host);
  const text::IdSet drained = service_->engine().module().drains().ranks();
  while_rivals_return_nothing([&] {
    request(agent.client, "resource.agent-health", payload, noresponse);
    deliver();
  });
  if (fails_still) {
    demand(service_->engine().module().drains().ranks() == drained,
           fmt::format("{} is drained again for a check that has failed before", host));
  }
  if (counts && passes) failing_.erase(host);
  if (counts && !passes) failing_.insert(host);
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

}  // namespace resourced::sim

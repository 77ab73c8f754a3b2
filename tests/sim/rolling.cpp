// Rolling work among the other peers: its requests, and the checks of what it does.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulation.hpp"

namespace resourced::sim {

using nlohmann::json;
using Kind = Roller::Kind;
using Step = Roller::Step;

Roller::World Simulation::world_of_roller() {
  return {
      .below = [this](std::uint32_t limit) { return below(limit); },
      .ask = [this](const std::string& topic, const json& payload) { return ask_for_roller(topic, payload); },
      .on_action = [this](Kind kind, const Roller::Node& node) { judge_action(kind, node); },
      .on_success = [this](Kind kind, const Roller::Node& node) { judge_success(kind, node); },
      .last_event = [this] { return disk_.last(); },
  };
}

void Simulation::begin_rolling_work() {
  Roller::Work work;
  const std::set<std::string> hosts(configuration_.hosts.begin(), configuration_.hosts.end());
  for (const std::string& host : hosts) {
    if (chance(0.8)) work.hosts.push_back(host);
  }
  if (work.hosts.empty()) return;
  work.rules.reason = fmt::format("rolling: w{}", ++works_);
  work.rules.budget =
      chance(0.8) ? cli::rolling::Budget{1 + below(3), false} : cli::rolling::Budget{40, true};
  if (chance(0.3)) work.rules.by = {"p?"};
  work.rules.reboot = with_agents_ && chance(0.3);
  if (chance(0.3)) work.rules.most_at_once = 2;
  note(fmt::format("rolling work on {}, at most {}{}{}", fmt::join(work.hosts, ","), work.rules.budget.number,
                   work.rules.budget.is_percent ? "%" : "", work.rules.by.empty() ? "" : " by p?"));
  were_ready_.clear();
  left_.clear();
  roller_.begin_work(std::move(work));
}

void Simulation::roll() {
  if (!roller_.is_running()) {
    if (roller_client_) disconnect(*std::exchange(roller_client_, std::nullopt));
    if (!roller_.work()) begin_rolling_work();
    if (!roller_.work()) return;
    note("rolling runs");
    roller_heard_ = roller_.journal_begin();
    roller_.run();
    return deliver();
  }
  for (; roller_heard_ < disk_.last() && roller_.is_running(); ++roller_heard_) {
    const json event = json::parse(disk_.records[roller_heard_].text);
    if (event.at("name") != "offline") continue;
    for (const unsigned rank : parse_ranks(event.at("context").at("idset"))) {
      if (rank < configuration_.hosts.size())
        roller_.see_offline(configuration_.hosts[rank], roller_heard_ + 1);
    }
  }
  if (roller_.is_running()) roller_.act();
  if (!roller_.is_running()) note("rolling has ended");
  deliver();
}

std::uint32_t Simulation::ask_for_roller(const std::string& topic, const json& payload) {
  if (!roller_client_) roller_client_ = connect();
  check_rolling();
  std::map<unsigned, std::optional<std::string>> before;
  const Reference::Ranks ranks = payload.is_object() && payload.contains("targets")
                                     ? ranks_of(payload.at("targets"))
                                     : Reference::Ranks();
  const module::DrainTable& drains = service_->engine().module().drains();
  for (const unsigned rank : ranks) {
    if (const auto* drain = drains.find(rank)) before[rank] = drain->reason;
  }
  if (!payload.is_null()) note(fmt::format("rolling: {} {}", topic, payload.dump()));
  const std::uint32_t matchtag = request(*roller_client_, topic, payload);
  for (const auto& [rank, reason] : before) {
    if (reason && reason->starts_with("rolling: ")) continue;
    const auto* drain = drains.find(rank);
    demand(drain != nullptr && drain->reason == reason,
           fmt::format("rolling work ends or replaces the drain of rank {} for \"{}\"", rank,
                       reason.value_or("")));
  }
  roller_asked_[matchtag] = service_->engine().applied();
  return matchtag;
}

Reference::Ranks Simulation::ranks_of(const std::string& host) const {
  Reference::Ranks ranks;
  const text::IdSet& present = service_->engine().module().inventory().ranks();
  for (unsigned rank = 0; rank < configuration_.hosts.size(); ++rank) {
    if (configuration_.hosts[rank] == host && present.contains(rank)) ranks.insert(rank);
  }
  return ranks;
}

// By the rules of docs/maintenance.md: nodes that the work has begun and not returned are away, too.
void Simulation::check_budget(const Roller::Node& node, const Reference& state) const {
  const cli::rolling::Rules& rules = roller_.work()->rules;
  Reference::Ranks away;
  for (const unsigned rank : state.present()) {
    if (!state.online().contains(rank) || state.drained().contains(rank)) away.insert(rank);
  }
  Reference::Ranks rest;
  const Reference::Ranks own = state.present_on(node.host);
  for (const Roller::Node& other : roller_.nodes()) {
    const Reference::Ranks ranks = state.present_on(other.host);
    rest.insert(ranks.begin(), ranks.end());
    if (other.host != node.host && other.step != Step::waiting && !is_final(other.step))
      away.insert(ranks.begin(), ranks.end());
  }
  std::vector<Reference::Ranks> groups;
  if (!rules.by.empty()) {
    for (const auto& [name, ranks] : state.properties()) {
      groups.push_back(ranks);
      for (const unsigned rank : ranks) rest.erase(rank);
    }
  }
  groups.push_back(rest);
  for (const Reference::Ranks& group : groups) {
    std::size_t count = 0;
    bool is_own = false;
    for (const unsigned rank : group) {
      is_own = is_own || own.contains(rank);
      if (own.contains(rank) || away.contains(rank)) ++count;
    }
    const std::size_t most = rules.budget.is_percent
                                 ? std::max<std::size_t>(1, group.size() * rules.budget.number / 100)
                                 : rules.budget.number;
    demand(!is_own || count <= most, fmt::format("{} is drained: {} of {} are away, and the budget is {}",
                                                 node.host, count, fmt::join(group, ","), most));
  }
}

void Simulation::judge_action(Kind kind, const Roller::Node& node) {
  // A wait follows a command without a look at the state.
  if (kind != Kind::drain && kind != Kind::run && kind != Kind::undrain) return;
  const Reference& state = state_after(roller_looked_);
  if (kind == Kind::drain) return check_budget(node, state);
  if (kind == Kind::undrain) {
    demand(node.gives_way || were_ready_.contains(node.host),
           fmt::format("rolling returns {}, which was not ready since its command", node.host));
    return;
  }
  if (!has_one_target(node.host)) return;
  const auto drained = state.drained();
  for (const unsigned rank : state.present_on(node.host)) {
    const auto drain = drained.find(rank);
    demand(drain != drained.end() && drain->second == node.reason,
           fmt::format("the command runs on {}, which rolling has not drained", node.host));
  }
  // The allocations of the log may be those of another target of the host, which has left.
  const text::IdSet& allocated = service_->engine().module().ledger().ranks();
  const Reference::Ranks own = ranks_of(node.host);
  if (std::ranges::none_of(own, [&](unsigned rank) { return allocated.contains(rank); })) return;
  for (const auto& [name, cores] : state.allocations()) {
    demand(std::ranges::none_of(cores, [&](const auto& core) { return core.first == node.host; }),
           fmt::format("the command runs on {}, which allocation {} has", node.host, name.second));
  }
}

void Simulation::judge_success(Kind kind, const Roller::Node& node) {
  if (kind == Kind::undrain && !node.gives_way) ++counts_.returned;
  if (kind == Kind::run) {
    were_ready_.erase(node.host);
    return check_rolling();
  }
  if (kind == Kind::wait_ready) {
    demand(were_ready_.contains(node.host), fmt::format("{} is said to be ready, and was not", node.host));
    return;
  }
  const Reference& state = state_after(roller_answered_);
  const auto drained = state.drained();
  for (const unsigned rank : state.present_on(node.host)) {
    const auto drain = drained.find(rank);
    const bool is_own = drain != drained.end() && drain->second == node.reason;
    if (kind == Kind::drain) demand(is_own, fmt::format("{} is not drained after the answer", node.host));
    if (kind == Kind::undrain) demand(!is_own, fmt::format("{} is drained after the answer", node.host));
  }
}

bool Simulation::is_ready(const std::string& host) const {
  const text::IdSet& online = service_->engine().module().online();
  const Reference::Ranks ranks = ranks_of(host);
  if (!std::ranges::all_of(ranks, [&](unsigned rank) { return online.contains(rank); })) return false;
  return !has_one_target(host) || !checked_.contains(host) || passed_.contains(host);
}

void Simulation::check_rolling() {
  const auto& work = roller_.work();
  if (!work) return;
  for (const std::string& host : work->hosts) {
    if (is_ready(host)) were_ready_.insert(host);
  }
  if (work->rules.budget.is_percent || !work->rules.by.empty()) return;
  // Hosts, as another R may give one of them more targets once it has been drained, or is about to be.
  std::set<std::string> hosts;
  for (const module::RecordedDrain& drain : service_->engine().absent().drains) {
    if (drain.reason == work->rules.reason) left_.insert(drain.target.host);
  }
  for (const auto& [key, ranks] : service_->engine().module().drains().groups()) {
    if (key.reason != work->rules.reason) continue;
    ranks.for_each([&](unsigned rank) { hosts.insert(configuration_.hosts.at(rank)); });
  }
  // A host that has left is no work any more, and comes back drained with another R.
  std::erase_if(hosts, [&](const std::string& host) { return left_.contains(host); });
  demand(hosts.size() <= work->rules.budget.number, "rolling work has drained more than its budget");
}

}  // namespace resourced::sim

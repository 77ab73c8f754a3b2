#include "core/nodes/nodes.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include <fmt/format.h>

#include "core/invariant.hpp"

namespace resourced::nodes {

using module::Module;
using rset::ResourceSet;
using text::IdSet;

namespace {

AgentNews replaced_news(AgentId agent, const std::string& host) {
  return {agent, std::nullopt, false, Error(EEXIST, "another agent speaks for " + host + " now")};
}

}  // namespace

Seconds Settings::beat_interval() const noexcept {
  constexpr Seconds longest{10};
  constexpr int beats_before_silence = 3;
  return std::min(longest, std::min(monitor.torpid_after, monitor.offline_after) / beats_before_silence);
}

void Nodes::watch(const Settings& settings) {
  settings_ = settings;
  monitor_.configure(settings.monitor);
  health_.configure(settings.health, settings.monitor);
}

Findings Nodes::settle(const Module& module, SteadyTime now) {
  Findings findings;
  if (discovery_) return findings;
  if (settings_->expect_all) monitor_.expect(module.inventory().ranks(), now);
  bring_back_heard(module.inventory().ranks(), module, now, findings);
  return findings;
}

void Nodes::bring_back_heard(const IdSet& ranks, const Module& module, SteadyTime now, Findings& findings) {
  IdSet heard;
  (ranks & module.drains().ranks()).for_each([&](IdSet::Id rank) {
    if (roster_.agent_of(rank) && !monitor_.is_silent(rank, now)) heard.insert(rank);
  });
  bring_back(health_.held() & ranks, heard, module, findings);
}

const Settings& Nodes::watched() const {
  if (!settings_) throw Error(ENOSYS, "this daemon takes no node agents (monitor.mode is static)");
  return *settings_;
}

void Nodes::discover(const DiscoverySettings& settings, RecordedHosts recorded, SteadyTime now) {
  discovery_.emplace(settings, std::move(recorded), now);
}

void Nodes::exclude(const text::Hostlist& hosts) {
  if (discovery_) discovery_->exclude(hosts);
}

std::optional<ResourceSet> Nodes::discovered(SteadyTime now) {
  if (!discovery_ || !discovery_->complete(now)) return std::nullopt;
  ResourceSet inventory = discovery_->inventory();
  discovery_.reset();
  return inventory;
}

Findings Nodes::begin(const Module& module, SteadyTime now, Seconds grace) {
  Findings findings;
  if (!settings_) return findings;
  if (grace > Seconds(0)) monitor_.keep(module.online(), now, now + grace);
  if (settings_->expect_all) monitor_.expect(module.inventory().ranks(), now);
  waiting_.clear();
  std::vector<std::pair<AgentId, NodeReport>> reports;
  for (auto& [id, agent] : agents_) {
    if (agent.waiting) reports.emplace_back(id, *std::exchange(agent.waiting, std::nullopt));
  }
  for (const auto& [id, report] : reports) {
    try {
      admit(id, report, module, now, findings);
    } catch (const Error& error) {
      agents_.erase(id);
      findings.news.push_back({id, std::nullopt, false, error});
    }
  }
  check_agents();
  return findings;
}

Findings Nodes::begin_again(const Module& module, SteadyTime now) {
  Findings findings;
  for (const auto& [id, agent] : agents_) {
    findings.news.push_back(
        {id, std::nullopt, false, Error(EAGAIN, "another R was loaded: say hello again")});
  }
  agents_.clear();
  roster_ = {};
  doubtful_.clear();
  health_.clear();
  rivals_.clear();
  if (!settings_) return findings;
  monitor_ = Monitor(settings_->monitor);
  module.online().for_each([&](IdSet::Id rank) {
    monitor_.hello(rank, now);
    monitor_.gone(rank, now);
  });
  if (settings_->expect_all) monitor_.expect(module.inventory().ranks(), now);
  return findings;
}

Findings Nodes::hello(AgentId agent, const Rivals::Speaker& speaker, const NodeReport& report,
                      const Module& module, SteadyTime now) {
  (void)watched();
  RESOURCED_INVARIANT(!agents_.contains(agent));
  Findings findings;
  if (discovery_) {
    discovery_->report(report);
    const auto [place, is_first] = waiting_.emplace(report.hostname, agent);
    if (!is_first) {
      const AgentId replaced = std::exchange(place->second, agent);
      agents_.erase(replaced);
      findings.news.push_back(replaced_news(replaced, report.hostname));
    }
    agents_[agent] = {speaker, report, report.boot_id};
    findings.news.push_back({agent, std::nullopt, false, std::nullopt});
    check_agents();
    return findings;
  }
  agents_[agent] = {speaker, std::nullopt, report.boot_id};
  try {
    admit(agent, report, module, now, findings);
  } catch (const Error&) {
    agents_.erase(agent);
    check_agents();
    throw;
  }
  check_agents();
  return findings;
}

void Nodes::admit(AgentId agent, const NodeReport& report, const Module& module, SteadyTime now,
                  Findings& findings) {
  const auto may_replace = [&](AgentId present, IdSet::Id rank) {
    return monitor_.is_silent(rank, now) ||
           agents_.at(present).speaker.connection == agents_.at(agent).speaker.connection;
  };
  const auto [rank, replaced] = roster_.admit(agent, report.hostname, module.inventory(), may_replace);
  if (replaced) {
    if (rivals_.replaced(rank, agents_.at(*replaced).speaker, agents_.at(agent).speaker, now))
      findings.rivalries.push_back({report.hostname, rivals_.origins().at(rank)});
    agents_.erase(*replaced);
    findings.news.push_back(replaced_news(*replaced, report.hostname));
  }
  monitor_.hello(rank, now);
  health_.hello(rank, report.health);
  verify(rank, report, module, findings);
  findings.news.push_back({agent, rank, health_.wants_checks() && !report.health, std::nullopt});
}

void Nodes::verify(IdSet::Id rank, const NodeReport& report, const Module& module, Findings& findings) {
  std::string reason = verify_node(module.inventory(), rank, report, settings_->verify);
  doubtful_.erase(rank);
  if (module.excluded().contains(rank) || !reason.empty()) doubtful_.emplace(rank, report);
  if (reason.empty()) return;
  if (auto drain = monitor_drain(IdSet::range(rank, rank), reason, module)) {
    findings.commands.emplace_back(*std::move(drain));
    findings.unfit.push_back({rank, report.hostname, std::move(reason)});
  } else if (module.drains().ranks().contains(rank)) {
    findings.unfit.push_back({rank, report.hostname, std::move(reason), true});
  }
}

std::vector<UnfitNode> Nodes::mismatched_among(const IdSet& ranks, const Module& module) const {
  std::vector<UnfitNode> unfit;
  if (doubtful_.empty()) return unfit;
  const ResourceSet& inventory = module.inventory();
  (ranks & inventory.ranks()).for_each([&](IdSet::Id rank) {
    const auto found = doubtful_.find(rank);
    if (found == doubtful_.end()) return;
    const NodeReport& report = found->second;
    if (std::string reason = verify_node(inventory, rank, report, settings_->verify); !reason.empty())
      unfit.push_back({rank, report.hostname, std::move(reason)});
  });
  return unfit;
}

std::vector<UnfitNode> Nodes::unfit_among(const IdSet& ranks, const Module& module) const {
  std::vector<UnfitNode> unfit = mismatched_among(ranks, module);
  IdSet sick = ranks & health_.unchecked();
  for (const UnfitNode& node : unfit) sick.erase(node.rank);
  const ResourceSet& inventory = module.inventory();
  (sick & inventory.ranks()).for_each([&](IdSet::Id rank) {
    if (auto failure = health_.failure(rank))
      unfit.push_back({rank, inventory.host(rank), std::move(failure->reason), false, failure->since});
  });
  return unfit;
}

IdSet Nodes::without_checks(const IdSet& ranks, const Module& module) const {
  IdSet without;
  if (!health_.wants_checks()) return without;
  ((ranks & with_agent()) - module.online()).for_each([&](IdSet::Id rank) {
    if (!health_.checks(rank)) without.insert(rank);
  });
  return without;
}

std::string Nodes::boot_id(IdSet::Id rank) const {
  const auto agent = roster_.agent_of(rank);
  return agent ? agents_.at(*agent).boot_id : "";
}

void Nodes::beat(AgentId agent, SteadyTime now) {
  if (const auto rank = roster_.rank_of(agent)) monitor_.beat(*rank, now);
}

Findings Nodes::health(AgentId agent, const HealthReport& report, const Module& module, SteadyTime now) {
  Findings findings;
  const auto rank = roster_.rank_of(agent);
  if (!rank) return findings;
  if (!health_.checks(*rank)) {
    throw Error(EINVAL, fmt::format("the hello of the agent on {} says nothing of checks",
                                    module.inventory().host(*rank)));
  }
  monitor_.beat(*rank, now);
  const IdSet target{*rank};
  if (const auto complaint = health_.report(*rank, report, rivals_.targets().contains(*rank), now)) {
    auto drain = complaint->flaps ? flap_drain(target, complaint->reason, module)
                                  : health_drain(target, complaint->reason, module);
    if (drain) {
      findings.commands.emplace_back(*std::move(drain));
      findings.unfit.push_back({*rank, module.inventory().host(*rank), complaint->reason});
    }
  } else {
    bring_back(target, target, module, findings);
  }
  return findings;
}

void Nodes::end_drains(const IdSet& ranks, const Module& module, Findings& findings) const {
  if (auto undrain = health_.ended_drains(ranks, module)) findings.commands.emplace_back(*std::move(undrain));
}

void Nodes::bring_back(const IdSet& held, const IdSet& drained, const Module& module, Findings& findings) {
  const IdSet released = held - rivals_.targets();
  const IdSet well = drained - rivals_.targets();
  MonitorBatch batch = health_.release(released);
  monitor_.take_flapping(released | well, batch);
  const IdSet returning = well - batch.flapping;
  carry_out(std::move(batch), module, findings);
  end_drains(returning, module, findings);
}

void Nodes::end(AgentId agent, End end, SteadyTime now) {
  const auto found = agents_.find(agent);
  if (found == agents_.end()) return;
  if (const auto& waiting = found->second.waiting) {
    // The discovery is missing if the daemon refused its inventory and is about to end.
    if (discovery_) discovery_->withdraw(waiting->hostname);
    waiting_.erase(waiting->hostname);
  }
  if (const auto rank = roster_.remove(agent)) {
    doubtful_.erase(*rank);
    if (end == End::farewell) {
      monitor_.goodbye(*rank, now);
    } else {
      monitor_.gone(*rank, now);
    }
  }
  agents_.erase(found);
  check_agents();
}

void Nodes::force_down(const IdSet& ranks, SteadyTime now) {
  ranks.for_each([&](IdSet::Id rank) { monitor_.goodbye(rank, now); });
}

std::vector<AgentNews> Nodes::forget(const IdSet& ranks) {
  monitor_.forget(ranks);
  health_.forget(ranks);
  rivals_.forget(ranks);
  std::vector<AgentNews> news;
  ranks.for_each([&](IdSet::Id rank) {
    doubtful_.erase(rank);
    if (const auto agent = roster_.forget(rank)) {
      agents_.erase(*agent);
      news.push_back(
          {*agent, std::nullopt, false, Error(EINVAL, "this node has left the instance for good")});
    }
  });
  check_agents();
  return news;
}

void Nodes::check_agents() const { RESOURCED_INVARIANT(roster_.size() + waiting_.size() == agents_.size()); }

std::vector<module::Command> Nodes::told(const ParentChange& change, const Module& module) {
  RESOURCED_INVARIANT(enclosed());
  return presence_->told(change, module);
}

Findings Nodes::tick(const Module& module, SteadyTime now, WallTime wall) {
  Findings findings;
  if (discovery_) return findings;
  end_rivalries(module, now, findings);
  auto batch = monitor_.tick(now);
  if (!batch) return findings;
  std::ranges::move(silence_drains(batch->silent, module, now, wall), std::back_inserter(findings.commands));
  const IdSet heard = (batch->online | batch->lively) - batch->flapping - rivals_.targets();
  const IdSet shut = health_.held() & rivals_.targets();
  MonitorBatch passed = health_.pass(*std::move(batch), findings.without_checks);
  passed.online -= shut;
  carry_out(std::move(passed), module, findings);
  end_drains(heard, module, findings);
  return findings;
}

void Nodes::end_rivalries(const Module& module, SteadyTime now, Findings& findings) {
  const IdSet apart = rivals_.expire(now) & module.inventory().ranks();
  if (apart.empty()) return;
  apart.for_each([&](IdSet::Id rank) { findings.rivalries.push_back({module.inventory().host(rank), ""}); });
  bring_back_heard(apart, module, now, findings);
}

void Nodes::carry_out(MonitorBatch batch, const Module& module, Findings& findings) {
  if (presence_) batch = presence_->seen(std::move(batch));
  std::ranges::move(monitor_commands(batch, module), std::back_inserter(findings.commands));
}

std::optional<SteadyTime> Nodes::next_deadline() const {
  if (discovery_) return discovery_->next_deadline();
  const auto monitored = monitor_.next_deadline();
  const auto apart = rivals_.next_deadline();
  return monitored && apart ? std::min(*monitored, *apart) : monitored ? monitored : apart;
}

}  // namespace resourced::nodes

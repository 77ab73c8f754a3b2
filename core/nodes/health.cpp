#include "core/nodes/health.hpp"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/invariant.hpp"
#include "core/text/duration.hpp"

namespace resourced::nodes {

using module::Command;
using module::Module;
using text::IdSet;

namespace {

IdSet one(IdSet::Id rank) { return IdSet::range(rank, rank); }

std::string reason_of(const HealthReport& report) {
  if (!report.reason.empty()) return fmt::format("{}{}", module::health_prefix, report.reason);
  return fmt::format("{}the check failed with status {}", module::health_prefix, report.status);
}

}  // namespace

void Health::configure(const HealthSettings& settings, const MonitorSettings& flapping) {
  settings_ = settings;
  flaps_.configure(flapping.flap_count, flapping.flap_window);
  flapping_reason_ = fmt::format("flapping: unhealthy more than {} times within {}", flapping.flap_count,
                                 text::format_duration(flapping.flap_window));
}

void Health::set_unchecked(IdSet::Id rank, bool unchecked) {
  if (unchecked_.contains(rank) == unchecked) return;
  if (unchecked) {
    unchecked_.insert(rank);
  } else {
    unchecked_.erase(rank);
  }
  ++version_;
}

void Health::hello(IdSet::Id rank, bool checks) {
  set_unchecked(rank, checks);
  if (!checks) {
    targets_.erase(rank);
    return;
  }
  targets_[rank].passed = false;
}

std::optional<Health::Complaint> Health::report(IdSet::Id rank, const HealthReport& report, bool of_rivals,
                                                SteadyTime now) {
  const auto found = targets_.find(rank);
  RESOURCED_INVARIANT(found != targets_.end());
  Target& target = found->second;
  const bool passes = report.status == 0;
  target.passed = passes;
  set_unchecked(rank, !passes);
  flaps_.forget_before(now);
  if (passes) {
    target.failure.reset();
    return std::nullopt;
  }
  std::string reason = reason_of(report);
  if (target.failure) {
    target.failure->reason = std::move(reason);
    return std::nullopt;
  }
  target.failure = {reason, now};
  // Count flaps only if drains end by themselves: otherwise an operator ends each of them.
  const bool flaps = !of_rivals && settings_.on_return == HealthReturn::automatic && flaps_.fell(rank, now);
  if (flaps) return Complaint{flapping_reason_, true};
  return Complaint{std::move(reason)};
}

std::optional<Health::Failure> Health::failure(IdSet::Id rank) const {
  const auto found = targets_.find(rank);
  return found == targets_.end() ? std::nullopt : found->second.failure;
}

void Health::forget(const IdSet& ranks) {
  ranks.for_each([&](IdSet::Id rank) {
    set_unchecked(rank, false);
    targets_.erase(rank);
    flaps_.forget(rank);
  });
  held_ -= ranks;
  held_torpid_ -= ranks;
}

void Health::clear() {
  IdSet known = held_;
  for (const auto& [rank, target] : targets_) known.insert(rank);
  forget(known);
}

bool Health::has_passed(IdSet::Id rank) const {
  const auto found = targets_.find(rank);
  return found != targets_.end() && found->second.passed;
}

MonitorBatch Health::pass(MonitorBatch batch, IdSet& without_checks) {
  const IdSet gone = batch.offline | batch.lost;
  held_ -= gone;
  if (settings_.gate) {
    IdSet held;
    batch.online.for_each([&](IdSet::Id rank) {
      if (has_passed(rank)) return;
      held.insert(rank);
      if (!targets_.contains(rank)) without_checks.insert(rank);
    });
    held_ |= held;
    batch.online -= held;
  }
  held_torpid_ -= gone | batch.lively;
  held_torpid_ |= batch.torpid & held_;
  batch.torpid -= held_;
  return batch;
}

MonitorBatch Health::release(const IdSet& ranks) {
  MonitorBatch batch;
  (ranks & held_).for_each([&](IdSet::Id rank) {
    if (!settings_.gate || has_passed(rank)) batch.online.insert(rank);
  });
  batch.torpid = batch.online & held_torpid_;
  held_ -= batch.online;
  held_torpid_ -= batch.online;
  return batch;
}

std::optional<module::UndrainCommand> Health::ended_drains(const IdSet& ranks, const Module& module) const {
  if (settings_.on_return != HealthReturn::automatic) return std::nullopt;
  IdSet ended;
  (ranks & module.drains().ranks() & module.inventory().ranks()).for_each([&](IdSet::Id rank) {
    const module::Drain& drain = *module.drains().find(rank);
    const bool for_health = drain.is_for_health_of(module.inventory().host(rank));
    if (!for_health && !drain.is_for_silence()) return;
    const bool needs_check = for_health || settings_.gate || targets_.contains(rank);
    if (!needs_check || has_passed(rank)) ended.insert(rank);
  });
  if (ended.empty()) return std::nullopt;
  return module::UndrainCommand{ended.encode(), std::nullopt, module::DrainMode::none, true};
}

std::optional<module::DrainCommand> health_drain(const IdSet& ranks, const std::string& reason,
                                                 const Module& module) {
  const IdSet targets = (ranks & module.inventory().ranks()) - module.excluded() - module.drains().ranks();
  if (targets.empty()) return std::nullopt;
  return module::DrainCommand{{reason}, targets.encode(), module::DrainMode::none};
}

std::vector<Command> silence_drains(const std::vector<MonitorBatch::Silence>& silent, const Module& module,
                                    SteadyTime now, WallTime wall) {
  std::map<std::string, IdSet> by_reason;
  for (const MonitorBatch::Silence& silence : silent) {
    by_reason[fmt::format("{}{}", module::silence_prefix, text::format_utc(wall - (now - silence.since)))] |=
        one(silence.rank);
  }
  std::vector<Command> commands;
  for (const auto& [reason, ranks] : by_reason) {
    if (auto drain = health_drain(ranks, reason, module)) commands.emplace_back(*std::move(drain));
  }
  return commands;
}

}  // namespace resourced::nodes

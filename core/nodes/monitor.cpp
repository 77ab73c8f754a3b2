#include "core/nodes/monitor.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/invariant.hpp"
#include "core/text/duration.hpp"

namespace resourced::nodes {

using text::IdSet;

Monitor::Monitor(const MonitorSettings& settings) { configure(settings); }

void Monitor::configure(const MonitorSettings& settings) {
  settings_ = settings;
  flaps_.configure(settings.flap_count, settings.flap_window);
}

void Monitor::advance(SteadyTime now) { now_ = std::max(now_, now); }

void Monitor::hello(IdSet::Id rank, SteadyTime now) {
  advance(now);
  const bool fresh = targets_.find(rank) == nullptr;
  Target& target = targets_.get(rank);
  if (fresh) offline_.push_back(target);
  if (target.online && !target.connected && !target.kept) gone_.remove(target);
  target.connected = true;
  heard(target);
}

void Monitor::beat(IdSet::Id rank, SteadyTime now) {
  advance(now);
  Target* target = targets_.find(rank);
  if (target != nullptr && target->connected) heard(*target);
}

void Monitor::gone(IdSet::Id rank, SteadyTime now) {
  advance(now);
  Target* target = targets_.find(rank);
  if (target == nullptr || !target->connected) return;
  target->connected = false;
  if (!target->online) return;
  target->since = now_;
  gone_.push_back(*target);
}

void Monitor::goodbye(IdSet::Id rank, SteadyTime now) {
  advance(now);
  Target* target = targets_.find(rank);
  if (target == nullptr) return;
  if (target->connected) target->heard_at = now_;
  if (target->online) fall(*target);
  target->connected = false;
}

bool Monitor::is_silent(IdSet::Id rank, SteadyTime now) const {
  const Target* target = targets_.find(rank);
  return target == nullptr || !target->online || !target->connected ||
         target->heard_at + settings_.torpid_after <= now;
}

void Monitor::keep(const IdSet& ranks, SteadyTime now, SteadyTime until) {
  advance(now);
  RESOURCED_INVARIANT(targets_.size() == 0);
  kept_until_ = until;
  ranks.for_each([&](IdSet::Id rank) {
    Target& target = targets_.get(rank);
    target.heard_at = now_;
    target.online = target.told_online = target.kept = true;
    kept_.push_back(target);
  });
}

void Monitor::expect(const IdSet& ranks, SteadyTime now) {
  advance(now);
  ranks.for_each([&](IdSet::Id rank) {
    if (targets_.find(rank) != nullptr) return;
    Target& target = targets_.get(rank);
    target.since = target.heard_at = now_;
    offline_.push_back(target);
    miss(target);
  });
}

void Monitor::forget(const IdSet& ranks) {
  ranks.for_each([&](IdSet::Id rank) {
    if (Target* target = targets_.find(rank)) drop(*target);
  });
  marked_ -= ranks;
  flapping_ -= ranks;
}

void Monitor::drop(Target& target) {
  if (target.online) {
    remove(target);
  } else if (!target.lost) {
    offline_.remove(target);
  }
  present(target);
  flaps_.forget(target.rank);
  targets_.erase(target.rank);
}

void Monitor::remove(Target& target) {
  if (target.kept) {
    target.kept = false;
    return kept_.remove(target);
  }
  (target.torpid ? torpid_ : lively_).remove(target);
  if (!target.connected) gone_.remove(target);
}

void Monitor::miss(Target& target) {
  if (target.absent) return;
  target.absent = true;
  target.absent_since = now_;
  absent_.push_back(target);
}

void Monitor::present(Target& target) {
  if (target.absent && !target.overdue) absent_.remove(target);
  target.absent = target.overdue = target.told_overdue = false;
}

void Monitor::heard(Target& target) {
  target.heard_at = now_;
  present(target);
  if (target.online) {
    remove(target);
    if (target.torpid) mark(target);
  } else {
    if (!target.lost) offline_.remove(target);
    target.lost = false;
    target.online = true;
    mark(target);
  }
  target.torpid = false;
  lively_.push_back(target);
}

void Monitor::fall(Target& target) {
  RESOURCED_INVARIANT(target.online);
  remove(target);
  target.online = false;
  target.torpid = false;
  target.since = now_;
  offline_.push_back(target);
  miss(target);
  if (flaps_.fell(target.rank, now_)) flapping_.insert(target.rank);
  mark(target);
}

void Monitor::mark(Target& target) {
  if (target.marked) return;
  target.marked = true;
  if (marked_.empty()) opened_ = now_;
  marked_.insert(target.rank);
}

std::optional<MonitorBatch> Monitor::tick(SteadyTime now) {
  advance(now);
  expire_kept();
  expire_connections();
  expire_silent();
  expire_lost();
  expire_absent();
  flaps_.forget_before(now_);
  if (marked_.empty() || opened_ + settings_.coalesce > now_) return std::nullopt;
  MonitorBatch batch = collect();
  if (batch.empty()) return std::nullopt;
  return batch;
}

// Deadlines are computed as in next_deadline(): a tick at exactly that time handles the deadline.

void Monitor::expire_kept() {
  if (kept_until_ > now_) return;
  while (Target* target = kept_.front()) fall(*target);
}

void Monitor::expire_connections() {
  while (Target* target = gone_.front()) {
    if (target->since + settings_.grace > now_) break;
    fall(*target);
  }
}

void Monitor::expire_silent() {
  while (Target* target = torpid_.front()) {
    if (target->heard_at + settings_.offline_after > now_) break;
    fall(*target);
  }
  while (Target* target = lively_.front()) {
    if (target->heard_at + settings_.offline_after <= now_) {
      fall(*target);
    } else if (target->heard_at + settings_.torpid_after <= now_) {
      lively_.remove(*target);
      target->torpid = true;
      torpid_.push_back(*target);
      miss(*target);
      mark(*target);
    } else {
      break;
    }
  }
}

void Monitor::expire_lost() {
  while (Target* target = offline_.front()) {
    if (target->since + settings_.lost_after > now_) break;
    offline_.remove(*target);
    target->lost = true;
    mark(*target);
  }
}

void Monitor::expire_absent() {
  while (Target* target = absent_.front()) {
    if (target->absent_since + settings_.drain_after > now_) break;
    absent_.remove(*target);
    target->overdue = true;
    mark(*target);
  }
}

std::optional<SteadyTime> Monitor::next_deadline() const {
  SteadyTime next(forever);
  if (!marked_.empty()) next = std::min(next, opened_ + settings_.coalesce);
  const Seconds silence = std::min(settings_.torpid_after, settings_.offline_after);
  if (const Target* target = lively_.front()) next = std::min(next, target->heard_at + silence);
  if (const Target* target = torpid_.front())
    next = std::min(next, target->heard_at + settings_.offline_after);
  if (kept_.front() != nullptr) next = std::min(next, kept_until_);
  if (const Target* target = gone_.front()) next = std::min(next, target->since + settings_.grace);
  if (const Target* target = offline_.front()) next = std::min(next, target->since + settings_.lost_after);
  if (const Target* target = absent_.front())
    next = std::min(next, target->absent_since + settings_.drain_after);
  if (next == SteadyTime(forever)) return std::nullopt;
  return next;
}

MonitorBatch Monitor::collect() {
  MonitorBatch batch;
  marked_.for_each([&](IdSet::Id rank) {
    Target* target = targets_.find(rank);
    RESOURCED_INVARIANT(target != nullptr && target->marked);
    report(*target, batch);
  });
  marked_.clear();
  flapping_ -= batch.lost;
  take_flapping(IdSet(flapping_), batch);
  return batch;
}

void Monitor::take_flapping(const IdSet& ranks, MonitorBatch& batch) {
  batch.flapping = flapping_ & ranks;
  flapping_ -= batch.flapping;
  if (!batch.flapping.empty()) {
    batch.flapping_reason = fmt::format("flapping: offline more than {} times within {}",
                                        settings_.flap_count, text::format_duration(settings_.flap_window));
  }
}

// Adds the net change of a target since the last batch, and forgets the target if it is lost.
void Monitor::report(Target& target, MonitorBatch& batch) {
  RESOURCED_INVARIANT(target.online || !target.torpid);
  RESOURCED_INVARIANT(!target.lost || !target.online);
  target.marked = false;
  if (target.online != target.told_online) (target.online ? batch.online : batch.offline).insert(target.rank);
  const bool was_torpid = target.told_torpid && target.online;
  if (target.torpid != was_torpid) (target.torpid ? batch.torpid : batch.lively).insert(target.rank);
  target.told_online = target.online;
  target.told_torpid = target.torpid;
  if (target.overdue && !target.told_overdue && !target.lost) {
    target.told_overdue = true;
    batch.silent.push_back({target.rank, target.heard_at});
  }
  if (!target.lost) return;
  batch.lost.insert(target.rank);
  drop(target);
}

bool MonitorBatch::empty() const noexcept {
  return online.empty() && offline.empty() && torpid.empty() && lively.empty() && flapping.empty() &&
         lost.empty() && silent.empty();
}

}  // namespace resourced::nodes

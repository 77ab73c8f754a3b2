// Random histories of agents, compared with a naive model that evaluates every target at every step. The
// number of a history is its seed.
#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "core/nodes/monitor.hpp"

namespace resourced::test {

using text::IdSet;

namespace {

constexpr IdSet::Id watched_count = 6;

// The model of a target.
struct WatchedTarget {
  bool known = false;
  bool connected = false;
  bool online = false;
  bool kept = false;
  bool torpid = false;
  SteadyTime heard_at{};
  SteadyTime gone_at{};
  SteadyTime fell_at{};
  std::vector<SteadyTime> falls;
  bool flapping = false;
  bool told_online = false;
  bool told_torpid = false;
  bool changed = false;
  // Torpid or offline since `absent_at`.
  bool absent = false;
  SteadyTime absent_at{};
  bool overdue = false;
  bool told_overdue = false;
};

class Model {
 public:
  nodes::MonitorSettings settings;

  void keep(IdSet::Id rank, SteadyTime now, SteadyTime until) {
    WatchedTarget& target = targets_[rank];
    target.known = target.online = target.told_online = target.kept = true;
    target.heard_at = now;
    kept_until_ = until;
  }
  void hello(IdSet::Id rank, SteadyTime now) {
    targets_[rank].connected = true;
    hear(targets_[rank], now);
  }
  void beat(IdSet::Id rank, SteadyTime now) {
    if (targets_[rank].connected) hear(targets_[rank], now);
  }
  void gone(IdSet::Id rank, SteadyTime now) {
    if (!targets_[rank].connected) return;
    targets_[rank].connected = false;
    targets_[rank].gone_at = now;
  }
  void goodbye(IdSet::Id rank, SteadyTime now) {
    if (targets_[rank].connected) targets_[rank].heard_at = now;
    if (targets_[rank].online) fall(targets_[rank], now);
    targets_[rank].connected = false;
  }
  void forget(IdSet::Id rank) { targets_[rank] = {}; }
  void expect(IdSet::Id rank, SteadyTime now) {
    if (targets_[rank].known) return;
    targets_[rank].known = true;
    targets_[rank].fell_at = targets_[rank].heard_at = now;
    miss(targets_[rank], now);
  }

  nodes::MonitorBatch tick(SteadyTime now) {
    IdSet lost;
    for (IdSet::Id rank = 0; rank < watched_count; ++rank) {
      WatchedTarget& target = targets_[rank];
      if (target.online && is_dead(target, now)) fall(target, now);
      if (target.online && !target.kept && !target.torpid && target.heard_at + settings.torpid_after <= now) {
        target.torpid = true;
        change(target, now);
        miss(target, now);
      }
      if (target.absent && !target.overdue && target.absent_at + settings.drain_after <= now) {
        target.overdue = true;
        change(target, now);
      }
      if (target.known && !target.online && target.fell_at + settings.lost_after <= now) {
        change(target, now);
        lost.insert(rank);
      }
    }
    if (!pending() || opened_ + settings.coalesce > now) return {};
    return collect(lost);
  }

  [[nodiscard]] SteadyTime deadline() const {
    SteadyTime next(forever);
    if (pending()) next = opened_ + settings.coalesce;
    for (const WatchedTarget& target : targets_) {
      if (target.absent && !target.overdue) next = std::min(next, target.absent_at + settings.drain_after);
      if (target.kept) {
        next = std::min(next, kept_until_);
      } else if (target.online) {
        next = std::min(next, target.heard_at + settings.offline_after);
        if (!target.torpid) next = std::min(next, target.heard_at + settings.torpid_after);
        if (!target.connected) next = std::min(next, target.gone_at + settings.grace);
      } else if (target.known && !(target.changed && target.fell_at + settings.lost_after <= last_)) {
        next = std::min(next, target.fell_at + settings.lost_after);
      }
    }
    return next;
  }

  void pass(SteadyTime now) { last_ = now; }

 private:
  [[nodiscard]] bool pending() const {
    return std::ranges::any_of(targets_, [](const WatchedTarget& target) { return target.changed; });
  }

  [[nodiscard]] bool is_dead(const WatchedTarget& target, SteadyTime now) const {
    if (target.kept) return kept_until_ <= now;
    return target.heard_at + settings.offline_after <= now ||
           (!target.connected && target.gone_at + settings.grace <= now);
  }

  void change(WatchedTarget& target, SteadyTime now) {
    if (!pending()) opened_ = now;
    target.changed = true;
  }

  static void miss(WatchedTarget& target, SteadyTime now) {
    if (!target.absent) target.absent_at = now;
    target.absent = true;
  }

  void hear(WatchedTarget& target, SteadyTime now) {
    target.known = true;
    target.absent = target.overdue = target.told_overdue = false;
    target.heard_at = now;
    if (!target.online || target.torpid) change(target, now);
    target.online = true;
    target.torpid = target.kept = false;
  }

  void fall(WatchedTarget& target, SteadyTime now) {
    change(target, now);
    miss(target, now);
    target.online = target.torpid = target.kept = false;
    target.fell_at = now;
    target.falls.push_back(now);
    const auto recent = std::ranges::count_if(
        target.falls, [&](SteadyTime time) { return now - time <= settings.flap_window; });
    if (recent <= static_cast<std::ptrdiff_t>(settings.flap_count)) return;
    target.flapping = true;
    target.falls.clear();
  }

  nodes::MonitorBatch collect(const IdSet& lost) {
    nodes::MonitorBatch batch;
    for (IdSet::Id rank = 0; rank < watched_count; ++rank) {
      WatchedTarget& target = targets_[rank];
      if (target.online && !target.told_online) batch.online.insert(rank);
      if (!target.online && target.told_online) batch.offline.insert(rank);
      if (target.torpid && !target.told_torpid) batch.torpid.insert(rank);
      if (target.online && !target.torpid && target.told_torpid) batch.lively.insert(rank);
      if (target.flapping && !lost.contains(rank)) batch.flapping.insert(rank);
      if (target.overdue && !target.told_overdue && !lost.contains(rank)) {
        batch.silent.push_back({rank, target.heard_at});
        target.told_overdue = true;
      }
      target.told_online = target.online;
      target.told_torpid = target.torpid;
      target.changed = target.flapping = false;
      if (lost.contains(rank)) forget(rank);
    }
    batch.lost = lost;
    return batch;
  }

  std::array<WatchedTarget, watched_count> targets_;
  SteadyTime opened_{};
  SteadyTime last_{};
  SteadyTime kept_until_{};
};

class AgentHistory {
 public:
  explicit AgentHistory(unsigned number) : random_(number) {
    reconfigure();
    if (below(2) == 0) keep_some();
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      // The time is sometimes exactly the deadline of the monitor: events must occur at once when they are
      // due.
      const auto next = monitor_.next_deadline();
      now_ = next && below(2) == 0 ? std::max(now_, *next) : now_ + Seconds(below(40) / 4.0);
      step();
      check();
    }
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }

  void reconfigure() {
    model_.settings.torpid_after = Seconds(below(20) + 1);
    model_.settings.offline_after = Seconds(below(40) + 1);
    model_.settings.grace = Seconds(below(10));
    model_.settings.coalesce = Seconds(below(8) / 4.0);
    model_.settings.flap_window = Seconds(below(100));
    model_.settings.lost_after = below(3) == 0 ? forever : Seconds(below(60));
    model_.settings.drain_after = below(3) == 0 ? forever : Seconds(below(60));
    model_.settings.flap_count = flap_count_;
    monitor_.configure(model_.settings);
  }

  // Keeps targets as present until a time, as a daemon does at its start after a takeover.
  void keep_some() {
    const SteadyTime until = now_ + Seconds(below(60));
    IdSet kept;
    for (IdSet::Id rank = 0; rank < watched_count; ++rank) {
      if (below(2) != 0) continue;
      kept.insert(rank);
      model_.keep(rank, now_, until);
    }
    monitor_.keep(kept, now_, until);
  }

  void step() {
    const IdSet::Id rank = below(watched_count);
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
        model_.hello(rank, now_);
        return monitor_.hello(rank, now_);
      case 3:
      case 4:
      case 5:
        model_.beat(rank, now_);
        return monitor_.beat(rank, now_);
      case 6:
      case 7:
        model_.gone(rank, now_);
        return monitor_.gone(rank, now_);
      case 8:
        model_.goodbye(rank, now_);
        return monitor_.goodbye(rank, now_);
      case 9:
        model_.expect(rank, now_);
        return monitor_.expect(IdSet{rank}, now_);
      case 10:
        if (below(4) != 0) return;
        model_.forget(rank);
        return monitor_.forget(IdSet{rank});
      default:
        return;
    }
  }

  void check() {
    const nodes::MonitorBatch expected = model_.tick(now_);
    model_.pass(now_);
    const auto batch = monitor_.tick(now_);
    CHECK(batch.has_value() != expected.empty());
    if (batch) {
      CHECK(batch->online.encode() == expected.online.encode());
      CHECK(batch->offline.encode() == expected.offline.encode());
      CHECK(batch->torpid.encode() == expected.torpid.encode());
      CHECK(batch->lively.encode() == expected.lively.encode());
      CHECK(batch->flapping.encode() == expected.flapping.encode());
      CHECK(batch->lost.encode() == expected.lost.encode());
      CHECK(std::ranges::equal(batch->silent, expected.silent, [](const auto& one, const auto& other) {
        return one.rank == other.rank && one.since == other.since;
      }));
    }
    CHECK(monitor_.next_deadline().value_or(SteadyTime(forever)) == model_.deadline());
  }

  std::mt19937 random_;
  std::size_t flap_count_ = below(3) + 1;
  Model model_;
  nodes::Monitor monitor_;
  SteadyTime now_ = steady_time(1);
};

TEST_CASE("any history of agents is seen as the rules have it") {
  for (unsigned number = 1; number <= 1000; ++number) {
    CAPTURE(number);
    AgentHistory(number).run(150);
  }
}

}  // namespace
}  // namespace resourced::test

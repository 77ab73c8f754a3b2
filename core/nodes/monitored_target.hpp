// The state of a target in the monitor, the lists of targets, and their look-up by rank. Private to
// monitor.hpp. A list needs no memory of its own: the links are in the targets, which never move.
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/invariant.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::nodes {

struct MonitoredTarget {
  struct Links {
    MonitoredTarget* previous = nullptr;
    MonitoredTarget* next = nullptr;
  };

  /// Position by `heard_at` while the target is online.
  Links by_heard;
  /// Position by `since` while the target is offline, or its connection is lost; its position among those
  /// that are kept.
  Links by_since;
  /// Position by `absent_since` while the target is absent and not overdue.
  Links by_absence;
  SteadyTime heard_at{};
  SteadyTime since{};
  SteadyTime absent_since{};
  text::IdSet::Id rank = 0;
  bool known : 1 = false;
  bool connected : 1 = false;
  bool online : 1 = false;
  bool torpid : 1 = false;
  bool lost : 1 = false;
  /// Whether the target is online from before this monitor, and not heard yet.
  bool kept : 1 = false;
  /// Whether the target was torpid or offline without a break since it was last heard or expected.
  bool absent : 1 = false;
  /// Whether the target was absent for longer than `drain_after`.
  bool overdue : 1 = false;
  bool told_overdue : 1 = false;
  bool told_online : 1 = false;
  bool told_torpid : 1 = false;
  bool marked : 1 = false;
};

/// A list of targets in the order in which they were added. All operations take constant time.
template <MonitoredTarget::Links MonitoredTarget::*links>
class TargetList {
 public:
  [[nodiscard]] MonitoredTarget* front() const noexcept { return first_; }

  /// Adds a target. Requires that it is in no list of these links.
  void push_back(MonitoredTarget& target) noexcept {
    RESOURCED_INVARIANT(is_free(target) && last_ != &target);
    target.*links = {last_, nullptr};
    (last_ != nullptr ? (last_->*links).next : first_) = &target;
    last_ = &target;
  }

  /// Removes a target. Requires that it is in this list.
  void remove(MonitoredTarget& target) noexcept {
    const auto [previous, next] = target.*links;
    RESOURCED_INVARIANT((previous != nullptr ? (previous->*links).next : first_) == &target);
    RESOURCED_INVARIANT((next != nullptr ? (next->*links).previous : last_) == &target);
    (previous != nullptr ? (previous->*links).next : first_) = next;
    (next != nullptr ? (next->*links).previous : last_) = previous;
    target.*links = {};
  }

 private:
  [[nodiscard]] static bool is_free(const MonitoredTarget& target) noexcept {
    return (target.*links).previous == nullptr && (target.*links).next == nullptr;
  }

  MonitoredTarget* first_ = nullptr;
  MonitoredTarget* last_ = nullptr;
};

/// Targets by rank, in pages of neighbouring ranks. A rank without a target takes memory only if its page is
/// in use.
class TargetPages {
 public:
  /// Returns a target; null for an unknown one.
  [[nodiscard]] MonitoredTarget* find(text::IdSet::Id rank) const;
  /// Returns the target of a rank, which is added if it is unknown.
  MonitoredTarget& get(text::IdSet::Id rank);
  /// Removes a target, which must be known and in no list.
  void erase(text::IdSet::Id rank);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  static constexpr text::IdSet::Id page_size = 64;
  struct Page {
    std::array<MonitoredTarget, page_size> targets;
    unsigned known = 0;
  };

  std::unordered_map<text::IdSet::Id, std::unique_ptr<Page>> pages_;
  std::size_t size_ = 0;
};

class FlapCounter {
 public:
  /// Sets the limit: a target may go offline `most` times within `window`; a `most` of 0 is no limit.
  void configure(std::size_t most, Seconds window) noexcept;

  /// Records that a target has gone offline. Returns true, and resets its count, when the limit is exceeded.
  /// `now` never decreases.
  bool fell(text::IdSet::Id rank, SteadyTime now);

  /// Removes entries that are older than the window, in time proportional to the removed targets.
  void forget_before(SteadyTime now);
  void forget(text::IdSet::Id rank);

  /// Number of targets that are kept.
  [[nodiscard]] std::size_t size() const noexcept { return falls_.size(); }

 private:
  struct Falls {
    std::vector<SteadyTime> times;
    std::list<text::IdSet::Id>::iterator place;
  };

  std::size_t most_ = 0;
  Seconds window_{};
  std::unordered_map<text::IdSet::Id, Falls> falls_;
  // Targets ordered by the latest time offline, the oldest first.
  std::list<text::IdSet::Id> order_;
};

}  // namespace resourced::nodes

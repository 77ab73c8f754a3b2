// Adds up how long targets were in which state, from a snapshot and the events after it. An event costs by
// the targets that it concerns; a start, a definition and the end of a month cost by all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/module/event.hpp"
#include "core/module/state.hpp"
#include "core/module/usage.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::module {

class UsageMeter {
 public:
  /// The groups that are counted besides all targets together.
  struct By {
    bool hosts = false;
    bool properties = false;
    /// A table for each month; otherwise there is one, of month 0.
    bool months = false;
  };
  using Tables = std::map<Month, UsageTable>;
  /// The longest time between two events that is counted. A longer one comes from a clock that was wrong, and
  /// then set.
  static constexpr Micros longest_gap = Micros{2} * 366 * 24 * 3600 * 1'000'000;

  UsageMeter(State states, WallTime at, By by);

  /// Adds the next event of the log. Returns the number of sums of targets that were looked up for it. Events
  /// at one time count as one change: a target that goes down and comes up again at the same time had no
  /// outage. Throws Error EINVAL as require_next() does.
  std::size_t add(const Event& event);
  /// Goes on with another state, after a part of the log that cannot be read.
  void adopt(State states);
  /// Goes on at a later time, and counts the time in between as missing.
  void skip_to(WallTime at);
  /// Counts up to this time.
  void finish(WallTime at);

  [[nodiscard]] const State& states() const noexcept { return states_; }
  /// The time up to which it has counted: that of the last event, or the one that finish() named.
  [[nodiscard]] WallTime now() const noexcept { return from_micros(now_); }
  /// Returns the sums, without months in which nothing was counted. To be called once, after finish().
  [[nodiscard]] Tables take();

 private:
  // States of a target, as bits.
  enum Flag : std::uint8_t {
    up = 1,
    allocated = 2,
    drained = 4,
    offline = 8,
    excluded = 16,
    unavailable = 32
  };

  struct Target {
    /// The time up to which the target was counted.
    Micros since = 0;
    std::uint8_t flags = 0;
    /// Whether the target was up before the time of its last change.
    bool was_up = false;
    Micros changed = 0;
    /// Why the target is unavailable; null while it is available.
    const Cause* cause = nullptr;
    /// The outage that was counted at `changed`.
    const Cause* counted = nullptr;
    UsageGroup* host = nullptr;
    std::vector<UsageGroup*> properties = {};
  };

  void advance(Micros time);
  void skip(Micros time);
  void close(Target& target);
  void close_all();
  /// Looks all targets up anew.
  void begin_targets();
  void begin_groups();
  void find_properties(text::IdSet::Id rank, Target& target);
  void refresh(text::IdSet::Id rank);
  void count_outage(Target& target, const Cause* cause, int number);
  [[nodiscard]] std::uint8_t flags_of(text::IdSet::Id rank) const;
  [[nodiscard]] const Cause* cause_of(text::IdSet::Id rank);
  void count_allocations(const text::IdSet& ranks, int number);
  void follow_allocations(const Event& event);
  template <class Visit>
  void for_groups(const Target& target, Visit visit);

  State states_;
  By by_;
  Micros now_;
  Month month_ = 0;
  Tables tables_;
  UsageTable* table_ = nullptr;
  std::set<Cause> causes_;
  std::unordered_map<text::IdSet::Id, Target> targets_;
  /// The number of allocations on a rank.
  std::unordered_map<text::IdSet::Id, std::int64_t> allocations_;
};

}  // namespace resourced::module

// Adds up how long targets were in which state, month by month, from a state and the events after it. A time
// in a state is the time at which a target leaves the state minus the time at which it entered it, so the
// sums need no intervals: each change adds its time to the former state of a target, and subtracts it from
// the new one. An event costs by the targets that it concerns; a start, a definition and the end of a month
// cost by all of them.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/module/event.hpp"
#include "core/module/state.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::module {

/// Microseconds since the epoch, and between two times. Integers, so that sums do not depend on their order.
using Micros = std::int64_t;

/// Returns the nearest microsecond. A time before the epoch becomes the epoch, one after 9999 its end.
[[nodiscard]] Micros to_micros(WallTime time) noexcept;
[[nodiscard]] WallTime from_micros(Micros time) noexcept;
/// Returns microseconds as seconds.
[[nodiscard]] constexpr double seconds_of(double micros) noexcept { return micros / 1e6; }

/// Months of the calendar in UTC, counted from the year 0.
using Month = std::int32_t;
[[nodiscard]] Month month_of(Micros time) noexcept;
[[nodiscard]] Micros begin_of(Month month) noexcept;
/// Returns the name of a month: `2026-11`.
[[nodiscard]] std::string month_name(Month month);

/// Times of targets by state, in microseconds, and their outages. A target can be in several states: each of
/// them counts the whole time. In the order of the members: the time in the inventory; up, which is neither
/// offline, drained, torpid nor excluded; allocated; drained; offline; excluded; unavailable, which is
/// offline, drained or torpid, and not excluded. Outages are how often a target that was up became
/// unavailable, except at a start of the daemon or a definition.
using Usage = std::array<std::int64_t, 8>;

/// Why a target is unavailable: `drain`, which alone has a reason that may be empty, or if it is not drained
/// `offline`, or else `torpid`. The kind is empty for the time in which the target is not unavailable.
struct Cause {
  std::string_view kind = "";
  std::string reason = {};
  auto operator<=>(const Cause&) const = default;
};

class UsageTally {
 public:
  /// The groups that are counted besides all targets together.
  struct By {
    bool hosts = false;
    bool properties = false;
  };
  /// The longest time between two events that is counted. A longer one comes from a clock that was wrong, and
  /// then set.
  static constexpr Micros longest_gap = Micros{2} * 366 * 24 * 3600 * 1'000'000;

  UsageTally(WallTime from, By by);

  /// To be called for each event, with the states before it. Returns the number of targets that it concerns.
  /// Events at one time count as one change: a target that goes down and comes up again at the same time had
  /// no outage.
  std::size_t add(const State& states, const Event& event);
  /// Counts the time up to `until` as missing. Other states may follow, after a part of the log that cannot
  /// be read.
  void skip(const State& states, WallTime until);
  /// Counts up to this time.
  void finish(const State& states, WallTime until);

  /// The time up to which it has counted: that of the last event, or the one that finish() named.
  [[nodiscard]] WallTime now() const noexcept { return from_micros(now_); }
  /// The number of sums that take() has to visit.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Calls visit(month, kind, name, cause, usage) for all sums since the last call. They can be negative
  /// before finish(): the sums of all calls are to be added. Kinds are `total`, `host` and `property`, which
  /// have a name, and `missing`, the time of which nothing is known, counted once and not for each target.
  template <class Visit>
  void take(Visit visit) {
    for (auto& [group, sums] : groups_) {
      for (const auto& [key, usage] : sums) {
        if (usage != Usage{}) visit(key.first, group.first, group.second, key.second, usage);
      }
      sums.clear();
    }
    size_ = 0;
  }

 private:
  using Sums = std::map<std::pair<Month, Cause>, Usage>;
  using Ranks = text::IdSet;

  void advance(const State& states, Micros time, bool is_known);
  /// Takes targets out of the sums before a change.
  void leave(const State& states, const Ranks& ranks);
  /// Puts the targets that left back, with the states after the change, and counts their outages.
  void settle(const State& states);
  void find_groups(const State& states, const Ranks& ranks);
  void count(const State& states, const Ranks& ranks, int sign);

  By by_;
  Micros now_;
  Month month_;
  /// The sums by kind and name of a group, and the groups of each target.
  std::map<std::pair<std::string_view, std::string>, Sums> groups_;
  std::unordered_map<Ranks::Id, std::vector<Sums*>> of_target_;
  std::size_t size_ = 0;
  /// Targets that left at the time `now_`, and those of them that were up.
  Ranks left_;
  Ranks was_up_;
  /// Whether all targets have left, as there was a start or a definition: their groups are found anew, and no
  /// outage begins.
  bool begins_anew_ = true;
  bool has_new_properties_ = false;
};

}  // namespace resourced::module

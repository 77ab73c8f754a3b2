// Adds up how long targets were in which state, month by month, from a state and the events after it. A time
// in a state is the time at which a target leaves the state minus the time at which it entered it, so the
// sums need no intervals: each change adds its time to the former state of a target, and subtracts it from
// the new one. An event costs by the targets that it concerns; a start, a definition and the end of a month
// cost by all of them.
#pragma once

#include <algorithm>
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
/// `offline`, or else `torpid`; `other` for drains with further reasons, where there are too many. The kind
/// is empty for the time in which the target is not unavailable.
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
  /// Maximum numbers of distinct reasons in a month: of all targets, and of one host or property, of which
  /// there may be many thousands. Drains with others have the cause `other`.
  static constexpr std::size_t most_reasons = 1000;
  static constexpr std::size_t most_reasons_of_part = 16;
  /// The longest time between two events that is counted. A longer one comes from a clock that was wrong, and
  /// then set.
  static constexpr Micros longest_gap = Micros{2} * 366 * 24 * 3600 * 1'000'000;

  UsageTally(WallTime from, By by);

  /// Counts an event, with the states before it, and returns the number of targets that the event concerns.
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
  /// The month of the time up to which it has counted.
  [[nodiscard]] Month month() const noexcept { return month_; }
  /// Removes the sums of the months before this one, and calls visit(month, kind, name, cause, usage) for
  /// each. Returns false if it stops after `most` sums or somewhat more. Kinds are `total`, `host` and
  /// `property`, which have a name, and `missing`, the time of which nothing is known, counted once and not
  /// for each target. The sums of the present month are complete after finish() or skip().
  template <class Visit>
  bool take(Month before, std::size_t most, Visit visit) {
    for (auto& [group, sums] : groups_) {
      for (auto month = sums.months.begin(); month != sums.months.end() && month->first < before;) {
        if (most == 0) return false;
        for (const auto& [cause, usage] : month->second) {
          if (usage != Usage{}) visit(month->first, group.first, group.second, cause, usage);
        }
        most -= std::min(most, month->second.size());
        month = sums.months.erase(month);
      }
    }
    return true;
  }

 private:
  struct Sums {
    std::map<Month, std::map<Cause, Usage>> months = {};
    std::size_t most_reasons = most_reasons_of_part;
  };
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
  /// Targets that left at the time `now_`, and those of them that were up.
  Ranks left_;
  Ranks was_up_;
  /// Whether all targets have left, as there was a start or a definition: their groups are found anew, and no
  /// outage begins.
  bool begins_anew_ = true;
  bool has_new_properties_ = false;
};

}  // namespace resourced::module

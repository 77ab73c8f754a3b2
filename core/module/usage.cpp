#include "core/module/usage.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <variant>

#include <fmt/format.h>

namespace resourced::module {

using text::IdSet;

namespace {

constexpr Month months_per_year = 12;
using CalendarTime = std::chrono::sys_time<std::chrono::microseconds>;

// The targets whose states an event changes, except a restart and a definition, which may change all.
struct Concerned {
  IdSet operator()(const ExpirationEvent& /*event*/) const { return {}; }
  IdSet operator()(const PropertyEvent& event) const { return property_targets(event); }
  IdSet operator()(const AllocEvent& event) const {
    IdSet ranks;
    for (const SharedAllocation& allocation : event.allocations) {
      ranks |= allocation->resources.ranks();
    }
    return ranks;
  }
  IdSet operator()(const AllocUpdateEvent& event) const { return event.added.ranks(); }
  IdSet operator()(const FreeEvent& event) const {
    IdSet ranks;
    for (const std::string& id : event.ids) {
      const auto place = find_freed(states.ledger.all(), event, id);
      if (place != states.ledger.all().end()) ranks |= place->second->resources.ranks();
    }
    return event.partial ? ranks & event.ranks : ranks;
  }
  IdSet operator()(const DefineEvent& /*event*/) const { return {}; }
  IdSet operator()(const ForgetEvent& /*event*/) const { return {}; }
  template <class Other>
  IdSet operator()(const Other& event) const {
    return event.ranks;
  }

  const State& states;
};

// The text of a reason serves as a name: a long one is cut, and the time of a silence is left out.
std::string reason_name(const Drain& drain) {
  constexpr std::size_t most_bytes = 200;
  if (drain.is_for_silence()) return "lost: silent";
  std::string name = drain.reason.value_or("");
  if (name.size() <= most_bytes) return name;
  std::size_t end = most_bytes;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  name.resize(end);
  return name + "...";
}

}  // namespace

Micros to_micros(WallTime time) noexcept {
  constexpr double end_of_9999 = 253402300799;
  return std::llround(std::clamp(to_number(time), 0.0, end_of_9999) * 1e6);
}

WallTime from_micros(Micros time) noexcept { return wall_time(seconds_of(static_cast<double>(time))); }

Month month_of(Micros time) noexcept {
  const CalendarTime point{std::chrono::microseconds(time)};
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(point));
  return static_cast<int>(date.year()) * months_per_year +
         static_cast<Month>(static_cast<unsigned>(date.month())) - 1;
}

Micros begin_of(Month month) noexcept {
  const std::chrono::year_month_day day(
      std::chrono::year(month / months_per_year),
      std::chrono::month(static_cast<unsigned>(month % months_per_year) + 1), std::chrono::day(1));
  return CalendarTime(std::chrono::sys_days(day)).time_since_epoch().count();
}

std::string month_name(Month month) {
  return fmt::format("{:04}-{:02}", month / months_per_year, month % months_per_year + 1);
}

UsageTally::UsageTally(WallTime from, By by) : by_(by), now_(to_micros(from)), month_(month_of(now_)) {}

std::size_t UsageTally::add(const State& states, const Event& event) {
  advance(states, to_micros(event.timestamp), true);
  const bool is_start = std::holds_alternative<RestartEvent>(event.body) ||
                        std::holds_alternative<DefineEvent>(event.body) || !states.keeps_past();
  const IdSet ranks = is_start ? states.inventory.ranks() : std::visit(Concerned{states}, event.body);
  leave(states, ranks);
  begins_anew_ = begins_anew_ || is_start;
  has_new_properties_ = has_new_properties_ || std::holds_alternative<PropertyEvent>(event.body);
  return ranks.count() + 1;
}

void UsageTally::skip(const State& states, WallTime until) {
  settle(states);
  leave(states, states.inventory.ranks());
  advance(states, to_micros(until), false);
  begins_anew_ = true;
}

void UsageTally::finish(const State& states, WallTime until) {
  advance(states, to_micros(until), true);
  settle(states);
  leave(states, states.inventory.ranks());
}

void UsageTally::advance(const State& states, Micros time, bool is_known) {
  if (time <= now_) return;
  settle(states);
  is_known = is_known && time - now_ <= longest_gap && states.keeps_past();
  if (!is_known) leave(states, states.inventory.ranks());
  while (now_ < time) {
    const Micros next_month = begin_of(month_ + 1);
    const Micros end = std::min(time, next_month);
    if (!is_known) groups_[{"missing", ""}].months[month_][{}][0] += end - now_;
    now_ = end;
    if (end < next_month) break;
    // In the sums of the next month, the targets enter at its beginning, which is its time 0.
    if (is_known) count(states, states.inventory.ranks(), 1);
    ++month_;
  }
}

void UsageTally::leave(const State& states, const IdSet& ranks) {
  if (begins_anew_) return;
  const IdSet leaving = ranks - left_;
  was_up_ |= leaving & states.available;
  count(states, leaving, 1);
  left_ |= leaving;
}

void UsageTally::settle(const State& states) {
  const IdSet& entering = begins_anew_ ? states.inventory.ranks() : left_;
  if (begins_anew_) was_up_.clear();
  if (begins_anew_ || has_new_properties_) find_groups(states, entering);
  count(states, entering, -1);
  left_.clear();
  was_up_.clear();
  begins_anew_ = has_new_properties_ = false;
}

void UsageTally::find_groups(const State& states, const IdSet& ranks) {
  const IdSet present = ranks & states.inventory.ranks();
  Sums& total = groups_[{"total", ""}];
  total.most_reasons = most_reasons;
  present.for_each([&](IdSet::Id rank) {
    of_target_[rank] = {&total};
    if (by_.hosts) of_target_[rank].push_back(&groups_[{"host", states.inventory.host(rank)}]);
  });
  if (!by_.properties) return;
  for (const auto& [name, targets] : states.inventory.properties()) {
    Sums& group = groups_[{"property", name}];
    (present & targets).for_each([&](IdSet::Id rank) { of_target_[rank].push_back(&group); });
  }
}

void UsageTally::count(const State& states, const IdSet& ranks, int sign) {
  const Micros time = sign * (now_ - begin_of(month_));
  (ranks & states.inventory.ranks()).for_each([&](IdSet::Id rank) {
    const Drain* const drain = states.targets.drains.find(rank);
    const bool is_offline = !states.targets.online.contains(rank);
    const bool is_down = drain != nullptr || is_offline || states.targets.torpid.contains(rank);
    const bool is_excluded = states.exclude.contains(rank);
    const bool is_unavailable = is_down && !is_excluded;
    Cause cause;
    if (is_unavailable) cause.kind = drain != nullptr ? "drain" : is_offline ? "offline" : "torpid";
    if (is_unavailable && drain != nullptr) cause.reason = reason_name(*drain);
    const bool begins_outage = sign < 0 && is_unavailable && was_up_.contains(rank);
    const auto of = [time](bool is_so) { return is_so ? time : 0; };
    const Usage usage{time,
                      of(!is_down && !is_excluded),
                      of(states.ledger.ranks().contains(rank)),
                      of(drain != nullptr),
                      of(is_offline),
                      of(is_excluded),
                      of(is_unavailable),
                      begins_outage ? 1 : 0};
    for (Sums* sums : of_target_[rank]) {
      auto& causes = sums->months[month_];
      // Without room for a reason when a target gets it, there is none when the target loses it either:
      // nothing is removed from the present month.
      auto sum = causes.find(cause);
      if (sum == causes.end()) {
        const bool has_room = cause.kind != "drain" || causes.size() < sums->most_reasons + causes.count({});
        sum = causes.try_emplace(has_room ? cause : Cause{"other"}).first;
      }
      for (std::size_t i = 0; i < usage.size(); ++i) sum->second.at(i) += usage.at(i);
    }
  });
}

}  // namespace resourced::module

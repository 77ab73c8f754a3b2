#include "core/module/usage.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

namespace resourced::module {

namespace {

constexpr double micros_per_second = 1e6;
constexpr Month months_per_year = 12;
using CalendarTime = std::chrono::sys_time<std::chrono::microseconds>;

std::chrono::year_month calendar_month(Month month) {
  return std::chrono::year(month / months_per_year) /
         std::chrono::month(static_cast<unsigned>(month % months_per_year) + 1);
}

}  // namespace

Micros to_micros(WallTime time) noexcept {
  constexpr double end_of_9999 = 253402300799;
  return std::llround(std::clamp(to_number(time), 0.0, end_of_9999) * micros_per_second);
}

WallTime from_micros(Micros time) noexcept {
  return wall_time(static_cast<double>(time) / micros_per_second);
}

double to_seconds(NodeTime time) noexcept { return static_cast<double>(time) / micros_per_second; }

Month month_of(Micros time) noexcept {
  const CalendarTime point{std::chrono::microseconds(time)};
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(point));
  return static_cast<int>(date.year()) * months_per_year +
         static_cast<Month>(static_cast<unsigned>(date.month())) - 1;
}

Micros begin_of(Month month) noexcept {
  const std::chrono::sys_days day = calendar_month(month) / std::chrono::day(1);
  return CalendarTime(day).time_since_epoch().count();
}

std::string month_name(Month month) {
  return fmt::format("{:04}-{:02}", month / months_per_year, month % months_per_year + 1);
}

Usage& Usage::operator+=(const Usage& other) noexcept {
  known += other.known;
  up += other.up;
  allocated += other.allocated;
  drained += other.drained;
  offline += other.offline;
  excluded += other.excluded;
  unavailable += other.unavailable;
  outages += other.outages;
  return *this;
}

Usage& UsageGroup::of(const Cause& cause, std::size_t most) {
  const auto found = causes.find(cause);
  if (found != causes.end()) return found->second;
  const bool has_room = causes.size() < most || cause.kind != Cause::Kind::drain;
  return causes[has_room ? cause : Cause{Cause::Kind::other}];
}

void UsageGroup::add(const UsageGroup& other, std::size_t most) {
  all += other.all;
  for (const auto& [cause, usage] : other.causes) of(cause, most) += usage;
}

UsageTable& UsageTable::operator+=(const UsageTable& other) {
  constexpr std::size_t of_part = UsageGroup::most_causes_of_part;
  all.add(other.all, UsageGroup::most_causes);
  for (const auto& [host, group] : other.hosts) hosts[host].add(group, of_part);
  for (const auto& [name, group] : other.properties) {
    if (properties.size() < most_properties || properties.contains(name))
      properties[name].add(group, of_part);
  }
  missing += other.missing;
  return *this;
}

}  // namespace resourced::module

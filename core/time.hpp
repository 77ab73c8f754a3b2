// Times and durations as types of their own. Points in time of different clocks do not compare, subtract or
// convert, nor does a bare number become one: the clock is part of the type. All count seconds in a double,
// which JSON has as a number (RFC 18, 20 and 44).
#pragma once

#include <chrono>
#include <limits>

#pragma GCC visibility push(default)
namespace resourced {

using Seconds = std::chrono::duration<double>;
inline constexpr Seconds forever{std::numeric_limits<double>::infinity()};

/// Clocks that name the epoch of a time. None can be read here: callers pass the time as an argument.
struct WallClock {};
struct SteadyClock {};
struct BootClock {};

/// Seconds since the Unix epoch, as in timestamps of events. Goes back when the clock is set back.
using WallTime = std::chrono::time_point<WallClock, Seconds>;
/// Seconds since some fixed moment, the same for all times of a process. Never goes back.
using SteadyTime = std::chrono::time_point<SteadyClock, Seconds>;
/// As SteadyTime, for a time that others measure too, as that of a lease: it goes on while the machine
/// sleeps.
using BootTime = std::chrono::time_point<BootClock, Seconds>;

/// A number of seconds, as JSON, SQL and arguments of programs have it.
[[nodiscard]] constexpr double to_number(Seconds duration) noexcept { return duration.count(); }
[[nodiscard]] constexpr double to_number(WallTime time) noexcept { return time.time_since_epoch().count(); }
[[nodiscard]] constexpr double to_number(SteadyTime time) noexcept { return time.time_since_epoch().count(); }
[[nodiscard]] constexpr double to_number(BootTime time) noexcept { return time.time_since_epoch().count(); }

[[nodiscard]] constexpr WallTime wall_time(double seconds) noexcept { return WallTime(Seconds(seconds)); }
[[nodiscard]] constexpr SteadyTime steady_time(double seconds) noexcept {
  return SteadyTime(Seconds(seconds));
}
[[nodiscard]] constexpr BootTime boot_time(double seconds) noexcept { return BootTime(Seconds(seconds)); }

/// The end of the year 9999, behind which dates have no ISO 8601 form of four digits.
inline constexpr WallTime last_time = wall_time(253402300799.0);

}  // namespace resourced
#pragma GCC visibility pop

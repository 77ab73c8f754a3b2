// Durations as users write them (RFC 23): a number with an optional unit, `1.2h`, `30`, `inf`. And points in
// time, as texts show them that no program reads.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/time.hpp"

namespace resourced::text {

/// The units that a reader of durations takes: those of RFC 23, or also weeks (`w`).
enum class DurationUnits { standard, with_weeks };

/// Returns the units in a list such as `ms, s, m, h, d`, for errors.
[[nodiscard]] std::string list_of_units(DurationUnits units);
/// Returns the seconds of a unit by its letters or its word, `h`, `hour` or `hours`; nothing for another
/// text.
[[nodiscard]] std::optional<double> seconds_of_unit(std::string_view unit);

/// Reads `N[ms|s|m|h|d]`, `inf` or `infinity` (any case). N is a non-negative floating point number as C99
/// writes it, decimal or hexadecimal, where a `d` is a digit (`0x1p3s`, `0xd` is 13 seconds); nan, blanks and
/// a minus are refused. `Nw` is a number of weeks, if `units` has them. Returns `forever` for `inf` only.
/// Throws Error EINVAL that shows the text, ERANGE for a number that is too large or too close to zero for a
/// double.
[[nodiscard]] Seconds parse_duration(std::string_view text, DurationUnits units = DurationUnits::standard);

/// The shortest text that parse_duration reads back as exactly this duration. Throws Error EINVAL for one
/// that is negative or nan.
[[nodiscard]] std::string format_duration(Seconds duration);

/// Returns the begun second in UTC, `2026-01-01T00:00:00Z`; for a year that no calendar has, the seconds
/// since the epoch.
[[nodiscard]] std::string format_utc(WallTime time);

}  // namespace resourced::text

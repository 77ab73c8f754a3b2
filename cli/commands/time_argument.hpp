// Reads a time of a command line: seconds since the epoch, ISO 8601, or a duration from now.
#pragma once

#include <string_view>

#include "core/time.hpp"

namespace resourced::cli::commands {

/// The direction of a duration without a sign.
enum class Unsigned { ahead, back };

/// Reads `1700000000.5` (seconds since the epoch), `2026-11-22`, `2026-11-22T18:30`, `2026-11-22T18:30:05.5`
/// (ISO 8601; with `Z` or `+01:00` of that zone, else in local time; a blank may stand for the T), `+2h`,
/// `-2h`, or `2h` (RFC 23 with a unit). Throws UsageError that shows the text, also for a time before the
/// epoch.
[[nodiscard]] WallTime parse_time(std::string_view text, WallTime now, Unsigned direction);

/// Whether a text is a date to the second without a fraction, as times are shown.
[[nodiscard]] bool is_date_in_seconds(std::string_view text);

/// Reads an expiration as parse_time() does; it must be in the future. 0 and `never` mean none.
[[nodiscard]] WallTime parse_expiration(std::string_view text, WallTime now);

}  // namespace resourced::cli::commands

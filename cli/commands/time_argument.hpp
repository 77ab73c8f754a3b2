// Reads a time of a command line: seconds since the epoch, ISO 8601, a duration from now, or a form of Slurm.
#pragma once

#include <string_view>

#include "core/time.hpp"

namespace resourced::cli::commands {

/// The direction of a duration without a sign.
enum class Unsigned { ahead, back };

/// Reads a duration: as RFC 23 has it, with several units (`1h30m`), with weeks (`1w`), with the name of a
/// unit (`2hours`), or in the columns of Slurm (`1-12:30:00`, `36:30:00`). Throws what text::parse_duration()
/// does.
[[nodiscard]] Seconds parse_span(std::string_view text);

/// Reads `1700000000.5` (seconds since the epoch), `2026-11-22`, `2026-11-22T18:30`, `2026-11-22T18:30:05.5`
/// (ISO 8601; with `Z` or `+01:00` of that zone, else in local time; a blank may stand for the T), `+2h`,
/// `-2h`, or `2h` (parse_span() with a unit or days). Of Slurm's forms it reads `now`, `now+2hours`, `today`
/// and `tomorrow` (0 o'clock), and the next, or looking back the last, `18:30`, `18:30:05`, `noon` and
/// `midnight`. Throws UsageError that shows the text, also for a time before the epoch.
[[nodiscard]] WallTime parse_time(std::string_view text, WallTime now, Unsigned direction);

/// Whether a text is a date to the second without a fraction, as times are shown.
[[nodiscard]] bool is_date_in_seconds(std::string_view text);

/// Reads an expiration as parse_time() does; it must be in the future. 0 and `never` mean none.
[[nodiscard]] WallTime parse_expiration(std::string_view text, WallTime now);

}  // namespace resourced::cli::commands

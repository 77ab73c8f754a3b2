// The time argument of `resourcectl expiration set`.
#pragma once

#include <string_view>

namespace resourced::cli::commands {

/// Seconds since the epoch from a number of them, or from `+DURATION` (RFC 23) counted from `now`; 0 is
/// never. Throws UsageError that shows the text.
[[nodiscard]] double parse_expiration(std::string_view text, double now);

}  // namespace resourced::cli::commands

// The time argument of `resourcectl expiration set`.
#pragma once

#include <string_view>

#include "core/time.hpp"

namespace resourced::cli::commands {

/// A time from seconds since the epoch, or from `+DURATION` (RFC 23) counted from `now`; 0 is
/// never. Throws UsageError that shows the text.
[[nodiscard]] WallTime parse_expiration(std::string_view text, WallTime now);

}  // namespace resourced::cli::commands

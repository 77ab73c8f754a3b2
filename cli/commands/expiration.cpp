// Reading a point in time, see expiration.hpp.
#include "cli/commands/expiration.hpp"

#include <charconv>
#include <cmath>
#include <system_error>

#include <fmt/format.h>

#include "cli/commands/context.hpp"
#include "core/error.hpp"
#include "core/text/duration.hpp"

namespace resourced::cli::commands {

WallTime parse_expiration(std::string_view text, WallTime now) {
  if (text.starts_with('+')) {
    try {
      const Seconds duration = text::parse_duration(text.substr(1));
      if (duration < forever) return now + duration;
    } catch (const Error& error) {
      throw UsageError(fmt::format("bad time \"{}\": {}", text, error.what()));
    }
    throw UsageError(fmt::format("bad time \"{}\": must be finite; 0 means never", text));
  }
  double time = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, time);
  if (error != std::errc() || stop != end || !std::isfinite(time) || time < 0) {
    throw UsageError(fmt::format("bad time \"{}\": expected seconds since the epoch, +DURATION or 0", text));
  }
  return wall_time(time);
}

}  // namespace resourced::cli::commands

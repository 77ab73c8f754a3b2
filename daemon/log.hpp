// Logging to standard error: one line a message, with a time for people, and with the priority that journald
// reads where systemd collects the lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "config/config.hpp"

namespace resourced::daemon {

void set_up_logging(config::LogLevel level);
void set_log_level(config::LogLevel level);

/// Keeps what outsiders can cause without end from filling the log.
class RateLimit {
 public:
  /// Whether to say it now, and then how many times it was not said before.
  [[nodiscard]] std::optional<std::uint64_t> admit();

 private:
  std::optional<std::chrono::steady_clock::time_point> last_;
  std::uint64_t suppressed_ = 0;
};

}  // namespace resourced::daemon

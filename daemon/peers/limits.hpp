// A limit of the log lines that clients can cause.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/time.hpp"
#include "daemon/transport/token_bucket.hpp"

namespace resourced::daemon::peers {

/// Limits log lines that clients can cause without end, to one a second as a rule.
class RateLimit {
 public:
  explicit RateLimit(transport::TokenBucket::Rate rate = {1, 1}) : rate_(rate) {}

  /// Returns how the line ends if it should be written now: it says how many were left out before it, if any.
  [[nodiscard]] std::optional<std::string> admit() {
    return admit(SteadyTime(std::chrono::steady_clock::now().time_since_epoch()));
  }
  [[nodiscard]] std::optional<std::string> admit(SteadyTime now) {
    if (lines_.left(now, rate_) < 1) {
      ++suppressed_;
      return std::nullopt;
    }
    lines_.take(now, rate_, 1);
    const std::uint64_t lines = std::exchange(suppressed_, 0);
    return lines == 0 ? std::string() : fmt::format(" ({} more since the last such line)", lines);
  }

 private:
  transport::TokenBucket::Rate rate_;
  transport::TokenBucket lines_;
  std::uint64_t suppressed_ = 0;
};

}  // namespace resourced::daemon::peers

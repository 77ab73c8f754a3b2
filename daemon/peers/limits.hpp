// A limit of the log lines that clients can cause.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/time.hpp"
#include "daemon/transport/token_bucket.hpp"

namespace resourced::daemon::peers {

/// Limits log lines that clients can cause without end, to one a second as a rule.
class RateLimit {
 public:
  explicit RateLimit(transport::TokenBucket::Rate rate = {1, 1}) : rate_(rate) {}

  /// Returns a number if the line should be written now: that of the lines left out before it.
  [[nodiscard]] std::optional<std::uint64_t> admit(SteadyTime now) {
    if (lines_.left(now, rate_) < 1) {
      ++suppressed_;
      return std::nullopt;
    }
    lines_.take(now, rate_, 1);
    return std::exchange(suppressed_, 0);
  }
  [[nodiscard]] std::optional<std::uint64_t> admit() {
    return admit(SteadyTime(std::chrono::steady_clock::now().time_since_epoch()));
  }

 private:
  transport::TokenBucket::Rate rate_;
  transport::TokenBucket lines_;
  std::uint64_t suppressed_ = 0;
};

}  // namespace resourced::daemon::peers

// Limits of the work that clients can cause: requests, journal streams, log lines. Each is a token bucket.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/time.hpp"

namespace resourced::daemon::peers {

/// A token bucket: it is full at first, with `most` tokens, and refills at a rate. take() may leave a debt,
/// which is refilled first. `now` never decreases; the rate may differ from call to call.
class TokenBucket {
 public:
  struct Rate {
    double per_second;
    double most;
  };

  /// Takes so many tokens, and returns how many are left; less than 0 is a debt.
  double take(SteadyTime now, Rate rate, double tokens) noexcept {
    left_ = last_ ? std::min(rate.most, left_ + to_number(now - *last_) * rate.per_second) : rate.most;
    last_ = now;
    return left_ -= tokens;
  }
  /// How many are left.
  [[nodiscard]] double left(SteadyTime now, Rate rate) noexcept { return take(now, rate, 0); }
  /// The time until the debt is refilled; 0 or less without one.
  [[nodiscard]] Seconds pause(SteadyTime now, Rate rate) noexcept {
    return Seconds(-left(now, rate) / rate.per_second);
  }

 private:
  double left_ = 0;
  std::optional<SteadyTime> last_;
};

/// Limits log lines that clients can cause without end, to one a second as a rule.
class RateLimit {
 public:
  explicit RateLimit(TokenBucket::Rate rate = {1, 1}) : rate_(rate) {}

  /// Whether to write the line now, and then how many lines were left out before it.
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
  TokenBucket::Rate rate_;
  TokenBucket lines_;
  std::uint64_t suppressed_ = 0;
};

}  // namespace resourced::daemon::peers

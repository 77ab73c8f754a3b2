// Limits the work that clients can cause: requests, journal streams, log lines.
#pragma once

#include <algorithm>
#include <optional>

#include "core/time.hpp"

namespace resourced::daemon::transport {

/// A token bucket: it is full at first, with `most` tokens, and refills at a rate. take() may leave a debt,
/// which is refilled first. `now` never decreases; the rate may differ from call to call.
class TokenBucket {
 public:
  struct Rate {
    double per_second;
    double most;
  };

  /// Takes this number of tokens. Returns how many are left; a number below 0 is a debt.
  double take(SteadyTime now, Rate rate, double tokens) noexcept {
    left_ = last_ ? std::min(rate.most, left_ + to_number(now - *last_) * rate.per_second) : rate.most;
    last_ = now;
    return left_ -= tokens;
  }
  /// Returns how many tokens are left.
  [[nodiscard]] double left(SteadyTime now, Rate rate) noexcept { return take(now, rate, 0); }
  /// Returns the time until the debt is refilled; 0 or less without a debt.
  [[nodiscard]] Seconds pause(SteadyTime now, Rate rate) noexcept {
    return Seconds(-left(now, rate) / rate.per_second);
  }

 private:
  double left_ = 0;
  std::optional<SteadyTime> last_;
};

}  // namespace resourced::daemon::transport

// Limits of what clients can make the daemon do: requests per second, and lines in the log.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "core/time.hpp"

namespace resourced::daemon::peers {

/// How many requests a client may make in a second, as a bucket of that many tokens that fills at that rate.
/// A debt shows that a client goes on although it is refused.
class TokenBucket {
 public:
  enum class Verdict {
    within,
    /// More than the rate.
    over,
    /// A whole second's worth beyond the rate, refusals notwithstanding.
    flood,
  };

  /// Takes one token. `now` never decreases; `rate` may differ from call to call.
  Verdict take(SteadyTime now, double rate) noexcept {
    tokens_ = fresh_ ? rate : std::min(rate, tokens_ + (now - last_).count() * rate);
    fresh_ = false;
    last_ = now;
    tokens_ -= 1;
    if (tokens_ >= 0) return Verdict::within;
    return tokens_ >= -rate ? Verdict::over : Verdict::flood;
  }

 private:
  double tokens_ = 0;
  SteadyTime last_{};
  bool fresh_ = true;
};

/// Limits log lines that clients can cause without end to one a second.
class RateLimit {
 public:
  /// Whether to write the line now, and then how many lines were left out before it.
  [[nodiscard]] std::optional<std::uint64_t> admit();

 private:
  std::optional<std::chrono::steady_clock::time_point> last_;
  std::uint64_t suppressed_ = 0;
};

}  // namespace resourced::daemon::peers

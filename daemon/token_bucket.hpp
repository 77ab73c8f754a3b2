// How many requests a client may make in a second, as a bucket of that many tokens that fills at that rate. A
// debt shows who goes on although it is refused.
#pragma once

#include <algorithm>

namespace resourced::daemon {

class TokenBucket {
 public:
  enum class Verdict {
    within,
    /// More than the rate.
    over,
    /// A whole second's worth beyond the rate, refusals notwithstanding.
    flood,
  };

  /// Takes one token. `now` is in seconds and never decreases; `rate` may differ from call to call.
  Verdict take(double now, double rate) noexcept {
    tokens_ = fresh_ ? rate : std::min(rate, tokens_ + (now - last_) * rate);
    fresh_ = false;
    last_ = now;
    tokens_ -= 1;
    if (tokens_ >= 0) return Verdict::within;
    return tokens_ >= -rate ? Verdict::over : Verdict::flood;
  }

 private:
  double tokens_ = 0;
  double last_ = 0;
  bool fresh_ = true;
};

}  // namespace resourced::daemon

// The rate of requests of one connection, of those too that reach no service: files, and refusals. A bucket
// that is full at first.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace resourced::daemon::http {

class RequestRate {
 public:
  /// Counts a request. False if there are more than `rate` in a second.
  [[nodiscard]] bool admit(double rate) {
    const auto now = Clock::now();
    const std::chrono::duration<double> passed = now - last_;
    last_ = now;
    left_ = std::min(rate, left_ + passed.count() * rate) - 1;
    return left_ >= 0;
  }

 private:
  using Clock = std::chrono::steady_clock;

  double left_ = std::numeric_limits<double>::max();
  Clock::time_point last_ = Clock::now();
};

}  // namespace resourced::daemon::http

// How long to wait until the next attempt: longer each time, up to a limit, and never quite as long as the
// others who wait, so that a whole cluster of agents does not come back at the same moment.
#pragma once

#include <random>

#include "client/connection.hpp"

namespace resourced::agent {

using client::Milliseconds;
using Random = std::mt19937_64;

/// Requires 0 < first <= most.
struct BackoffLimits {
  Milliseconds first;
  Milliseconds most;
};

class Backoff {
 public:
  explicit Backoff(BackoffLimits limits) : limits_(limits), longest_(limits.first) {}

  /// The pause after one more failure: between half of and all of a time that starts at `first` and doubles
  /// with each failure up to `most`.
  [[nodiscard]] Milliseconds next(Random& random);

  /// What had failed before went well for this long. Starts anew if that is as long as the longest pause: an
  /// attempt that succeeds for a moment only, again and again, is none the better for it.
  void held(Milliseconds time);

 private:
  BackoffLimits limits_;
  Milliseconds longest_;
};

}  // namespace resourced::agent

// Pauses between attempts: longer each time, up to a limit. If many clients wait for the same thing, such as
// the agents of a cluster, each draws a random pause, so that they do not retry at the same moment.
#pragma once

#include <random>
#include <utility>

#include "client/connection.hpp"

namespace resourced::client {

using Random = std::mt19937_64;

/// The first and the longest pause. Requires 0 < first <= most.
struct BackoffLimits {
  Milliseconds first;
  Milliseconds most;
};

class Backoff {
 public:
  explicit Backoff(BackoffLimits limits) : limits_(limits), longest_(limits.first) {}

  /// Returns the pause after one more failure: a time that starts at `first` and doubles with each failure up
  /// to `most`.
  [[nodiscard]] Milliseconds next() {
    // Compare half of the limit, since doubling may overflow.
    const auto doubled = longest_ > limits_.most / 2 ? limits_.most : longest_ * 2;
    return std::exchange(longest_, doubled);
  }
  /// Returns a random pause, between half of next() and next().
  [[nodiscard]] Milliseconds next(Random& random) {
    const auto longest = next().count();
    std::uniform_int_distribution<Milliseconds::rep> draw(longest - longest / 2, longest);
    return Milliseconds(draw(random));
  }

  /// Call after a success: the next pause is the first again.
  void reset() { longest_ = limits_.first; }
  /// Call after a success whose result lasted for this time. The pauses start again only if that is at least
  /// the longest pause, so that attempts that succeed only for a moment still get longer pauses.
  void held(Milliseconds time) {
    if (time >= limits_.most) reset();
  }

 private:
  BackoffLimits limits_;
  Milliseconds longest_;
};

}  // namespace resourced::client

// Measures the longest wait of a response for a commit.
#pragma once

#include <algorithm>
#include <string>

#include "core/time.hpp"

namespace resourced::daemon::streams {

class LongestWait {
 public:
  struct Wait {
    Seconds time{};
    /// The topic of the response; empty if none has waited.
    std::string topic;
  };

  /// Returns the longest wait since the start or clear().
  [[nodiscard]] const Wait& longest() const noexcept { return longest_; }
  /// Returns the longest wait that ended within the last minute or two. A gauge that is read once a minute
  /// misses none, and falls again.
  [[nodiscard]] Seconds recent(SteadyTime now) const noexcept {
    if (now - since_ >= 2 * period) return Seconds(0);
    return now - since_ >= period ? present_ : std::max(former_, present_);
  }

  /// Adds a response that has waited for this time until `now`.
  void add(SteadyTime now, Seconds time, const std::string& topic) {
    if (now - since_ >= period) {
      former_ = now - since_ < 2 * period ? present_ : Seconds(0);
      present_ = Seconds(0);
      since_ = now;
    }
    present_ = std::max(present_, time);
    if (time > longest_.time) longest_ = {time, topic};
  }
  /// Forgets the longest wait since the start.
  void clear() { longest_ = {}; }

 private:
  static constexpr Seconds period{60};

  Wait longest_;
  /// The longest wait in the period that began at `since_`, and in the period before.
  SteadyTime since_{};
  Seconds present_{};
  Seconds former_{};
};

}  // namespace resourced::daemon::streams

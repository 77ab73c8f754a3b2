// Tells whether the engine may free expired allocations by the wall clock. It must not within a minute of a
// start, or of a jump of the clock, as after a suspend of the machine: an operator can correct the clock
// first.
#pragma once

#include <optional>

#include "core/time.hpp"

namespace resourced::engine {

class TrustedClock {
 public:
  static constexpr Seconds patience{60};

  void start(WallTime wall, SteadyTime steady) {
    look(wall, steady);
    distrusted_until_ = steady + patience;
  }

  /// Takes both clocks at the same time.
  void look(WallTime wall, SteadyTime steady) {
    if (distrusted_until_ && steady >= *distrusted_until_) distrusted_until_.reset();
    // A clock that is corrected slowly gains or loses less than a thousandth.
    constexpr double slow = 1e-3;
    constexpr Seconds tolerated{1};
    const Seconds ahead = wall.time_since_epoch() - steady.time_since_epoch();
    const Seconds jump = ahead > ahead_ ? ahead - ahead_ : ahead_ - ahead;
    if (jump > tolerated + slow * (steady - looked_at_)) distrusted_until_ = steady + patience;
    ahead_ = ahead;
    looked_at_ = steady;
  }

  /// The time until which the clock is not trusted; nothing if it is.
  [[nodiscard]] std::optional<SteadyTime> distrusted_until() const noexcept { return distrusted_until_; }

 private:
  /// The difference of the clocks at the last look(), and its time.
  Seconds ahead_{};
  SteadyTime looked_at_{};
  std::optional<SteadyTime> distrusted_until_;
};

}  // namespace resourced::engine

// How long one peer or socket is served before the others of the loop have their turn: by time and not by
// messages, as these cost what they ask for. Each turn takes one message at least.
#pragma once

#include <chrono>

namespace resourced::daemon {

class Turn {
 public:
  [[nodiscard]] bool is_over() const noexcept { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// A small part of what a request takes on its way to an idle daemon and back, as others may have to wait
  /// for more than one turn: who floods the daemon must not double their time.
  static constexpr std::chrono::microseconds length{3};

  Clock::time_point end_ = Clock::now() + length;
};

}  // namespace resourced::daemon

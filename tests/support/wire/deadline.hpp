// Deadlines for the harness. The tests wait for events, not for time to pass: a deadline only turns a missing
// event into a failure with a description.
#pragma once

#include <chrono>
#include <stdexcept>

namespace resourced::wire {

/// Thrown if an event did not occur in time; the text names it.
class Timeout : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The usual time limit: ample, as tests share the machine with builds, and run under sanitizers.
inline constexpr std::chrono::seconds patience{30};

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::chrono::milliseconds time = patience) : end_(Clock::now() + time) {}

  /// Milliseconds left, for poll(2); 0 after the deadline.
  [[nodiscard]] int left() const;
  [[nodiscard]] bool passed() const { return left() == 0; }

  /// Waits for one of the poll(2) events on a descriptor. Returns false when the deadline has passed.
  [[nodiscard]] bool wait(int fd, short events) const;

 private:
  Clock::time_point end_;
};

}  // namespace resourced::wire

// How long the harness waits for an event before it gives up. Nothing here waits for time to pass: a deadline
// only turns an event that never comes into a failure that says what was missing.
#pragma once

#include <chrono>
#include <stdexcept>

namespace resourced::wire {

/// An event did not come in time; the text says which.
class Timeout : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Ample, as tests share the machine with builds and run under sanitizers.
inline constexpr std::chrono::seconds patience{30};

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::chrono::milliseconds time = patience) : end_(Clock::now() + time) {}

  /// Milliseconds left, as poll(2) takes them; 0 when it has passed.
  [[nodiscard]] int left() const;
  [[nodiscard]] bool passed() const { return left() == 0; }

  /// Waits for one of the poll(2) events on a descriptor. False when the deadline passed.
  [[nodiscard]] bool wait(int fd, short events) const;

 private:
  Clock::time_point end_;
};

}  // namespace resourced::wire

// Measures how long single pieces of work keep the loop, while all clients wait: the longest since the start,
// and its name. The bounds in docs/architecture.md are tested with these figures.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace resourced::daemon::transport {

/// The longest hold so far. Used by the thread of the loop alone.
class LoopHolds {
 public:
  using Clock = std::chrono::steady_clock;

  /// The longest piece of work; zero and "" if there was none.
  struct Longest {
    Clock::duration time{0};
    std::string name;
  };
  [[nodiscard]] const Longest& longest() const noexcept { return longest_; }
  /// Forgets the longest. The work that is under way is measured from now on.
  void clear();

 private:
  friend class LoopHold;

  Longest longest_;
  /// State of the work that is under way. It has the name of its longest part, if it has named parts.
  unsigned depth_ = 0;
  Clock::time_point begun_;
  Clock::duration part_{0};
  std::string name_;
};

/// A piece of work, from here to the end of the scope. One inside another is a part of it.
class LoopHold {
 public:
  /// Without `holds` nothing is measured. The name must outlive this.
  LoopHold(LoopHolds* holds, std::string_view name);
  ~LoopHold();
  LoopHold(const LoopHold&) = delete;
  LoopHold& operator=(const LoopHold&) = delete;
  LoopHold(LoopHold&&) = delete;
  LoopHold& operator=(LoopHold&&) = delete;

 private:
  LoopHolds* holds_;
  std::string_view name_;
  bool outermost_ = false;
  LoopHolds::Clock::time_point begun_;
};

}  // namespace resourced::daemon::transport

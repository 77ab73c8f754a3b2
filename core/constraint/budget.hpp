// Bounds the work of judging a request. Work is counted in steps of some nanoseconds each and not in time, so
// that the result does not depend on the load of the machine. Steps are spent before the work that they stand
// for.
#pragma once

#include <cstdint>
#include <limits>

namespace resourced {

class Budget {
 public:
  /// So much that nothing reaches it.
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

  explicit Budget(std::uint64_t steps = unlimited) noexcept : steps_(steps), left_(steps) {}

  /// Throws Error ETIMEDOUT if fewer steps are left.
  void spend(std::uint64_t steps) {
    if (steps > left_) run_out();
    left_ -= steps;
  }

  [[nodiscard]] std::uint64_t spent() const noexcept { return steps_ - left_; }

 private:
  [[noreturn]] void run_out();

  std::uint64_t steps_;
  std::uint64_t left_;
};

}  // namespace resourced

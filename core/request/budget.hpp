// How much work the judgement of a request may take, counted in steps: a step is some nanoseconds, whatever
// the machine and whoever else uses it. What a request costs is known before it is spent.
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

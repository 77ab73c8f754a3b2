// A budget bounds the work of judging a request. Work is counted in steps of some nanoseconds each instead of
// in time, so that the result does not depend on the load of the machine. Steps are spent before the work
// that they stand for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#pragma GCC visibility push(default)
namespace resourced::constraint {

class Budget {
 public:
  /// A budget that no work exceeds.
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

// Amounts of nodes, cores, gpus and pieces are calculated without overflow: larger results become max_amount,
// which no inventory reaches.

/// Upper limit of an amount.
constexpr std::uint64_t max_amount = std::uint64_t{1} << 62U;

/// Sum and product of amounts.
[[nodiscard]] constexpr std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  return std::min(max_amount, a + b);
}
[[nodiscard]] constexpr std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? max_amount : std::min(max_amount, product);
}

/// Returns what remains of `a` after `b` is subtracted, at least 0.
[[nodiscard]] constexpr std::uint64_t less(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

}  // namespace resourced::constraint
#pragma GCC visibility pop

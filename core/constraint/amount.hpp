// Amounts of nodes, cores, gpus and pieces, reckoned without overflow: what is too large stays at a limit
// that no inventory reaches.
#pragma once

#include <algorithm>
#include <cstdint>

namespace resourced {

/// Larger amounts are given as this one.
constexpr std::uint64_t max_amount = std::uint64_t{1} << 62U;

/// Both take amounts, and give one.
[[nodiscard]] constexpr std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  return std::min(max_amount, a + b);
}
[[nodiscard]] constexpr std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? max_amount : std::min(max_amount, product);
}

/// What is missing still when so much is there.
[[nodiscard]] constexpr std::uint64_t less(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

}  // namespace resourced

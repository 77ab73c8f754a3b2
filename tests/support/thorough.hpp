// Selects the number of random or repeated cases of a test.
#pragma once

#include <cstdlib>

namespace resourced::test {

/// Returns `all` if RESOURCED_THOROUGH is set, and `some` otherwise, as in ./test. ctest sets it for tests
/// with the label slow, which continuous integration runs.
template <typename Number>
[[nodiscard]] Number thorough(Number all, Number some) {
  return std::getenv("RESOURCED_THOROUGH") != nullptr ? all : some;
}

/// Returns `all`, or with sanitizers a fifth of it: each random case takes ten times as long then, and a few
/// of them show an error in the use of memory.
[[nodiscard]] constexpr unsigned unless_sanitized(unsigned all) {
#if defined(RESOURCED_SANITIZED)
  return all / 5;
#else
  return all;
#endif
}

}  // namespace resourced::test

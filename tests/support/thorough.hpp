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

}  // namespace resourced::test

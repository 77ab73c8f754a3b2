// How much of a test with random or repeated cases runs.
#pragma once

#include <cstdlib>

namespace resourced::test {

/// `all` where RESOURCED_THOROUGH is set, as ctest sets it for the tests with the label slow, which
/// continuous integration runs; `some` in ./test.
template <typename Number>
[[nodiscard]] Number thorough(Number all, Number some) {
  return std::getenv("RESOURCED_THOROUGH") != nullptr ? all : some;
}

}  // namespace resourced::test

// Marks a case that ./test does not run, as it waits for seconds or needs much processor time.
#pragma once

#include <doctest/doctest.h>

#include "thorough.hpp"

namespace resourced::test {

inline doctest::skip only_thorough() { return doctest::skip(!thorough(true, false)); }

}  // namespace resourced::test

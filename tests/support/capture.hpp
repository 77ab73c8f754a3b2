// Clang before 16 cannot use a structured binding in a lambda, which doctest's CAPTURE and INFO make of their
// argument. There they show nothing. Included by the precompiled header of the tests.
#pragma once

#include <doctest/doctest.h>

#if defined(__clang__) && __clang_major__ < 16
#undef CAPTURE
#define CAPTURE(x) static_cast<void>(x)
#undef INFO
#define INFO(...) static_cast<void>(0)
#endif

// Clang before 16 cannot use a structured binding in a lambda, which CAPTURE and INFO of doctest make of
// their argument. With such a Clang they show nothing. The precompiled header of the tests includes this
// file.
#pragma once

#include <doctest/doctest.h>

#if defined(__clang__) && __clang_major__ < 16
#undef CAPTURE
#define CAPTURE(x) static_cast<void>(x)
#undef INFO
#define INFO(...) static_cast<void>(0)
#endif

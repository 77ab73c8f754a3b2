// Assertions that stay on in every build. A broken invariant is a defect of the program: going on would write
// a wrong state to the log or tell it to a scheduler, so the program ends. Input from outside is never an
// invariant: bad input is an Error.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace resourced {

/// Prints one line to standard error and aborts.
[[noreturn]] inline void break_invariant(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, expression);
  std::abort();
}

}  // namespace resourced

/// Evaluates a condition that must hold for any input, and ends the program if it is false. The condition
/// should cost no more than the code around it.
#define RESOURCED_INVARIANT(condition) \
  ((condition) ? static_cast<void>(0) : ::resourced::break_invariant(#condition, __FILE__, __LINE__))

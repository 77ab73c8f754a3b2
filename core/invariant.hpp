// Assertions that stay on in every build. A broken invariant is a defect of the program: going on would write
// a wrong state to the log or tell it to a scheduler, so the program ends. What comes from outside is never
// an invariant: bad input is an Error.
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

/// Evaluates a condition that holds whatever anybody sends; if it does not, the program ends. The condition
/// costs no more than the work that it stands beside.
#define RESOURCED_INVARIANT(condition) \
  ((condition) ? static_cast<void>(0) : ::resourced::break_invariant(#condition, __FILE__, __LINE__))

// Cases that cannot run here name what they lack: tests/support/skipped makes the last line of ./test of it.
#pragma once

#include <cstdio>

namespace resourced::test {

/// Prints `skipped: needs WHAT`. WHAT is Debian packages, or what else is missing.
inline void say_skipped(const char* what) {
  std::printf("skipped: needs %s\n", what);
  std::fflush(stdout);
}

}  // namespace resourced::test

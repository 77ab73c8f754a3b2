// The limit of log lines.
#include "daemon/peers/limits.hpp"

#include <doctest/doctest.h>

namespace resourced::daemon::test {
namespace {

TEST_CASE("one line a second, which says how many were left out") {
  peers::RateLimit limit;
  CHECK(limit.admit(steady_time(50)) == "");
  CHECK_FALSE(limit.admit(steady_time(50)));
  CHECK_FALSE(limit.admit(steady_time(50.75)));
  CHECK(limit.admit(steady_time(51)) == " (2 more since the last such line)");
  CHECK_FALSE(limit.admit(steady_time(51.75)));
  // After a pause one line is allowed, not several.
  CHECK(limit.admit(steady_time(60)) == " (1 more since the last such line)");
  CHECK_FALSE(limit.admit(steady_time(60.5)));
}

}  // namespace
}  // namespace resourced::daemon::test

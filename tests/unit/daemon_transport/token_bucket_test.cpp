// The token bucket, which limits requests, the journal and log lines.
#include "daemon/transport/token_bucket.hpp"

#include <doctest/doctest.h>

namespace resourced::daemon::test {
namespace {

constexpr transport::TokenBucket::Rate ten_a_second{10, 20};

TEST_CASE("a bucket is full at first, and never more than full") {
  transport::TokenBucket bucket;
  CHECK(bucket.take(steady_time(100), ten_a_second, 5) == 15);
  CHECK(bucket.left(steady_time(100.25), ten_a_second) == 17.5);
  CHECK(bucket.left(steady_time(200), ten_a_second) == 20);
}

TEST_CASE("more may be taken than is left, and the debt takes its time") {
  transport::TokenBucket bucket;
  CHECK(bucket.take(steady_time(0), ten_a_second, 30) == -10);
  CHECK(bucket.pause(steady_time(0), ten_a_second) == Seconds(1));
  CHECK(bucket.pause(steady_time(0.75), ten_a_second) == Seconds(0.25));
  CHECK(bucket.pause(steady_time(1.5), ten_a_second) == Seconds(-0.5));
  CHECK(bucket.take(steady_time(1.5), ten_a_second, 6) == -1);
}

TEST_CASE("another rate holds from the call on that names it") {
  transport::TokenBucket bucket;
  CHECK(bucket.take(steady_time(0), ten_a_second, 20) == 0);
  CHECK(bucket.left(steady_time(1), {4, 8}) == 4);
  CHECK(bucket.left(steady_time(1), {4, 3}) == 3);
}

}  // namespace
}  // namespace resourced::daemon::test

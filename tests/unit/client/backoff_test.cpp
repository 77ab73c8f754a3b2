// Pauses between attempts: increasing up to a limit, and random.
#include "client/backoff.hpp"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

using namespace resourced;
using client::Backoff;
using client::BackoffLimits;
using client::Milliseconds;
using client::Random;

namespace {

constexpr BackoffLimits limits{Milliseconds(500), Milliseconds(10000)};

}  // namespace

TEST_SUITE("backoff") {
  TEST_CASE("the pause is between half of and all of a time that doubles up to the limit") {
    const std::vector<int> longest = {500, 1000, 2000, 4000, 8000, 10000, 10000, 10000};
    for (unsigned seed = 1; seed <= 200; ++seed) {
      CAPTURE(seed);
      Random random(seed);
      Backoff backoff(limits);
      for (const int time : longest) {
        const auto pause = backoff.next(random);
        CHECK(pause >= Milliseconds(time / 2));
        CHECK(pause <= Milliseconds(time));
      }
    }
  }

  TEST_CASE("without a draw the pause is that time") {
    Backoff backoff(limits);
    for (const int time : {500, 1000, 2000, 4000, 8000, 10000, 10000})
      CHECK(backoff.next() == Milliseconds(time));
    backoff.reset();
    CHECK(backoff.next() == Milliseconds(500));
  }

  TEST_CASE("those who fail together come back spread over the time") {
    std::vector<Milliseconds> pauses;
    for (unsigned seed = 1; seed <= 1000; ++seed) {
      Random random(seed);
      Backoff backoff({Milliseconds(10000), Milliseconds(10000)});
      pauses.push_back(backoff.next(random));
    }
    // The pauses are spread over five seconds: each tenth gets about a hundred of the thousand.
    for (int tenth = 0; tenth < 10; ++tenth) {
      CAPTURE(tenth);
      const auto from = Milliseconds(5000 + 500 * tenth);
      const auto count = std::count_if(pauses.begin(), pauses.end(), [&](Milliseconds pause) {
        return pause >= from && pause < from + Milliseconds(500);
      });
      CHECK(count > 50);
      CHECK(count < 200);
    }
  }

  TEST_CASE("the same seed gives the same pauses") {
    Random random_a(7);
    Random random_b(7);
    Backoff a(limits);
    Backoff b(limits);
    for (int i = 0; i < 20; ++i) CHECK(a.next(random_a) == b.next(random_b));
  }

  TEST_CASE("it starts anew after a success that lasted as long as the longest pause, and not before") {
    Random random(1);
    Backoff backoff(limits);
    for (int i = 0; i < 10; ++i) static_cast<void>(backoff.next(random));
    backoff.held(Milliseconds(9999));
    CHECK(backoff.next(random) >= Milliseconds(5000));
    backoff.held(Milliseconds(10000));
    CHECK(backoff.next(random) <= Milliseconds(500));
  }

  TEST_CASE("a limit may be any time") {
    Random random(1);
    SUBCASE("a millisecond") {
      Backoff backoff({Milliseconds(1), Milliseconds(1)});
      for (int i = 0; i < 100; ++i) CHECK(backoff.next(random) == Milliseconds(1));
    }
    SUBCASE("the longest that there is") {
      Backoff backoff({Milliseconds(1), Milliseconds::max()});
      auto last = Milliseconds(0);
      for (int i = 0; i < 100; ++i) {
        last = backoff.next(random);
        REQUIRE(last > Milliseconds(0));
      }
      CHECK(last >= Milliseconds::max() / 2);
    }
  }
}

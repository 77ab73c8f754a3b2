// Times of different clocks cannot be mixed: requires-expressions check what must not compile.
#include "core/time.hpp"

#include <cmath>
#include <concepts>
#include <type_traits>

#include <doctest/doctest.h>

using namespace resourced;

namespace {

template <class A, class B>
concept Subtracts = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept Adds = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Compares = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Equals = requires(A a, B b) {
  a == b;
};

template <class A, class B>
constexpr bool apart = !std::is_convertible_v<A, B> && !std::is_convertible_v<B, A> &&
                       !std::is_assignable_v<A&, B> && !Subtracts<A, B> && !Compares<A, B> && !Equals<A, B>;

static_assert(apart<WallTime, SteadyTime>);
static_assert(apart<WallTime, double>);
static_assert(apart<SteadyTime, double>);
static_assert(!std::is_convertible_v<double, Seconds> && !std::is_convertible_v<Seconds, double>);
static_assert(!std::is_convertible_v<Seconds, WallTime> && !std::is_convertible_v<Seconds, SteadyTime>);
static_assert(!Adds<WallTime, double> && !Adds<SteadyTime, double> && !Adds<WallTime, WallTime>);
static_assert(!Compares<WallTime, Seconds> && !Compares<Seconds, double>);

// The same operations compile for a single clock, which shows that the checks above can fail.
static_assert(Subtracts<WallTime, WallTime> && Compares<SteadyTime, SteadyTime> && Adds<SteadyTime, Seconds>);
static_assert(std::same_as<decltype(WallTime() - WallTime()), Seconds>);
static_assert(std::same_as<decltype(SteadyTime() + Seconds(1)), SteadyTime>);

}  // namespace

TEST_CASE("times are seconds, whole or not") {
  CHECK(to_number(wall_time(1.5)) == 1.5);
  CHECK(to_number(steady_time(2.25) + Seconds(1)) == 3.25);
  CHECK(wall_time(3) - wall_time(1) == Seconds(2));
  CHECK(Seconds(std::chrono::milliseconds(250)) == Seconds(0.25));
  CHECK(to_number(WallTime()) == 0);
}

TEST_CASE("forever is later than any time") {
  CHECK(std::isinf(to_number(steady_time(5) + forever)));
  CHECK(steady_time(5) < steady_time(0) + forever);
  CHECK(Seconds(1e300) < forever);
}

#include "core/invariant.hpp"

#include <doctest/doctest.h>

#include "end_of.hpp"

using resourced::test::End;
using resourced::test::end_of;

TEST_CASE("a broken invariant ends the program and names itself, in every build") {
  const int two = 2;
  const End end = end_of([&] { RESOURCED_INVARIANT(two + two == 5); });
  CHECK(end.signal == SIGABRT);
  CHECK(end.said.find("invariant_test.cpp:") != std::string::npos);
  CHECK(end.said.ends_with(": broken invariant: two + two == 5\n"));
}

TEST_CASE("an invariant that holds is evaluated once and says nothing") {
  int looks = 0;
  const End end = end_of([&] {
    RESOURCED_INVARIANT(++looks == 1);
    RESOURCED_INVARIANT(looks == 1);
  });
  CHECK(end.signal == 0);
  CHECK(end.said.empty());
}

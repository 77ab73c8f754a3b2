// The known name that is most similar to another one.
#include "core/text/nearest.hpp"

#include <array>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using resourced::text::edit_distance;
using resourced::text::nearest;

TEST_CASE("the distance counts insertions, deletions and replacements") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("status", "statsu") == 2);
}

TEST_CASE("a name that is alike is found, the first of several, and nothing for one that is not") {
  constexpr std::array<std::string_view, 5> names{"status", "stats", "drain", "undrain", "property"};
  CHECK(nearest("satus", names) == "status");
  CHECK(nearest("statsu", names) == "stats");
  CHECK(nearest("sttaus", names) == "status");
  CHECK(nearest("drian", names) == "drain");
  CHECK(nearest("prop", names) == "property");
  CHECK(nearest("nonsense", names) == std::nullopt);
  CHECK(nearest("x", names) == std::nullopt);
  CHECK(nearest("", names) == std::nullopt);
  CHECK(nearest(std::string(1 << 20, 's'), names) == std::nullopt);
}

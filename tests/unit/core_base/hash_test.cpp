#include "core/hash.hpp"

#include <string_view>

#include <doctest/doctest.h>

namespace resourced {

TEST_CASE("the hash of a text is its XXH3") {
  // As `xxhsum -H3` prints them.
  CHECK(Hash().add("").value() == 0x2d06800538d394c2);
  CHECK(Hash().add("foobar").value() == 0xd78fda63144c5c84);
}

TEST_CASE("a number counts as its bytes, the least significant first") {
  using namespace std::string_view_literals;
  CHECK(Hash().add(0x0807060504030201).value() == Hash().add("\x01\x02\x03\x04\x05\x06\x07\x08"sv).value());
}

TEST_CASE("the order of the values counts, and where one ends") {
  CHECK(Hash().add("foo").add("bar").value() != Hash().add("bar").add("foo").value());
  CHECK(Hash().add("foo").add("bar").value() != Hash().add("foobar").value());
  CHECK(Hash().add("foo").add("").value() != Hash().add("foo").value());
}

}  // namespace resourced

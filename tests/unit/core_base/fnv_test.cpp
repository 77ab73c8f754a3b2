// FNV-1a, with the test values of its authors.
#include "core/fnv.hpp"

#include <doctest/doctest.h>

namespace resourced {

TEST_CASE("the hash of a text is that of its authors, in parts as well") {
  CHECK(Fnv1a().value() == 0xcbf29ce484222325);
  CHECK(Fnv1a().add("a").value() == 0xaf63dc4c8601ec8c);
  CHECK(Fnv1a().add("foobar").value() == 0x85944171f73967e8);
  CHECK(Fnv1a().add("foo").add("bar").value() == 0x85944171f73967e8);
  CHECK(Fnv1a().add("\xff").value() == Fnv1a().add(0xff).value());
}

}  // namespace resourced

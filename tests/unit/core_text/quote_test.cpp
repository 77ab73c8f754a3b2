#include "core/text/quote.hpp"

#include <string>

#include <doctest/doctest.h>

using resourced::text::quoted;

TEST_CASE("quoted text is one line of printable ASCII") {
  CHECK(resourced::text::quoted("") == "\"\"");
  CHECK(resourced::text::quoted("foo[1-2]") == "\"foo[1-2]\"");
  CHECK(resourced::text::quoted("a\"b\\c") == R"("a\"b\\c")");
  CHECK(resourced::text::quoted(std::string("a\0\n\x7f\xff", 5)) == R"("a\x00\x0a\x7f\xff")");
}

TEST_CASE("quoted text is cut where it is long") {
  CHECK(resourced::text::quoted(std::string(60, 'x')) == "\"" + std::string(60, 'x') + "\"");
  CHECK(resourced::text::quoted(std::string(61, 'x')) == "\"" + std::string(60, 'x') + "...\"");
}

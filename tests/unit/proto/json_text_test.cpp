// JSON encoded as text, with escapes as in the JSON library.
#include "proto/json_text.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace resourced::proto {
namespace {

std::string written(std::string_view text) {
  std::string out;
  append_string(out, text);
  return out;
}

TEST_CASE("a string is written as it is, but what JSON wants escaped") {
  const struct {
    std::string_view text;
    std::string_view expected;
  } rows[] = {
      {"", R"("")"},
      {"bad dimm", R"("bad dimm")"},
      {"it's 1/2 \x7f", "\"it's 1/2 \x7f\""},
      {"caf\xc3\xa9 \xf0\x9f\x98\x80", "\"caf\xc3\xa9 \xf0\x9f\x98\x80\""},
      {R"(a "b" \c)", R"("a \"b\" \\c")"},
      {"a\nb\tc", R"("a\nb\tc")"},
      {std::string_view("\0\x1f", 2), R"("\u0000\u001f")"},
      {"not UTF-8: \xff.", "\"not UTF-8: \xef\xbf\xbd.\""},
      {"cut off: \xc3", "\"cut off: \xef\xbf\xbd\""},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    CHECK(written(row.text) == row.expected);
  }
}

TEST_CASE("what needs an escape is seen at every place of a text") {
  for (std::size_t length = 1; length <= 24; ++length) {
    for (std::size_t at = 0; at < length; ++at) {
      for (const char c : {'"', '\\', '\x1f', '\x80', '\x7f', ' '}) {
        std::string text(length, 'x');
        text[at] = c;
        CAPTURE(text);
        const auto expected =
            nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        CHECK(written(text) == expected);
      }
    }
  }
}

TEST_CASE("a key has a comma before it, unless it is the first") {
  std::string out = "{";
  append_key(out, "a");
  append_number(out, 0.1);
  append_key(out, "b");
  append_idset(out, text::IdSet::range(0, 3));
  out += '}';
  CHECK(out == R"({"a":0.1,"b":"0-3"})");
}

}  // namespace
}  // namespace resourced::proto

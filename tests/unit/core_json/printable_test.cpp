// Untrusted text, escaped for a terminal and a log.
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/json/utf8.hpp"

namespace resourced::json_text {
namespace {

using namespace std::string_literals;

TEST_CASE("printable: control characters are shown, not carried out") {
  CHECK(printable("plain \u00e9 \u2714 \U0001F600 \\ \"") == "plain \u00e9 \u2714 \U0001F600 \\ \"");
  CHECK(printable("\033[31mred\n\ttab\r\b\f") == R"(\u001b[31mred\n\ttab\r\b\f)");
  CHECK(printable("\0\x01\x1f\x20\x7e\x7f"s) == R"(\u0000\u0001\u001f ~\u007f)");
  CHECK(printable("\u009b31m\u0080\u009f\u00a0") == "\\u009b31m\\u0080\\u009f\u00a0");
  CHECK(printable("") == "");
}

TEST_CASE("printable: nothing turns the direction of a line or ends it") {
  CHECK(printable("a\u202Eb\u2066c\u2069\u2028\u2029\u200f\u061c") ==
        R"(a\u202eb\u2066c\u2069\u2028\u2029\u200f\u061c)");
  // A zero-width joiner, which some scripts need between letters.
  CHECK(printable("\u200d") == "\u200d");
}

TEST_CASE("printable: what is not UTF-8 is replaced byte by byte") {
  CHECK(printable("cut short \xC2") == "cut short \uFFFD");
  CHECK(printable("\xFF\xFE x") == "\uFFFD\uFFFD x");
  // A surrogate, an overlong escape, and a C1 control character without its first byte.
  CHECK(printable("\xED\xA0\x80|\xC0\x9B|\x9B") == "\uFFFD\uFFFD\uFFFD|\uFFFD\uFFFD|\uFFFD");
  for (int byte = 0; byte < 256; ++byte) {
    for (int next = 0; next < 256; ++next) {
      const std::string text{'a', static_cast<char>(byte), static_cast<char>(next), 'b'};
      const std::string shown = printable(text);
      CHECK_FALSE(find_invalid_utf8(shown));
      CHECK(printable(shown) == shown);
    }
  }
}

TEST_CASE("in_place: a question mark for each character that is not shown") {
  CHECK(printable_in_place("plain \u00e9 \u2714 \U0001F600 \\ \"") == "plain \u00e9 \u2714 \U0001F600 \\ \"");
  CHECK(printable_in_place("\033[31m\n\u009b\u202e\u2028\x7f") == "?[31m?????");
  CHECK(printable_in_place("a\xff\xc3") == "a??");
  for (const char* text : {"", "\t\u202e", "\u00e9\u009f\u2066x"}) {
    CAPTURE(text);
    CHECK(count_utf8_characters(printable_in_place(text)) == count_utf8_characters(text));
  }
}

TEST_CASE("printable: a JSON text on one line keeps its value") {
  const nlohmann::json value = {{"k\u009b", "v\033\u202e\x7f\n\"\\"}, {"n", {1, 2.5, nullptr}}};
  const std::string shown = printable(value.dump());
  CHECK(shown.find_first_of("\033\x7f") == std::string::npos);
  CHECK(nlohmann::json::parse(shown) == value);
}

TEST_CASE("printable_line: line ends at the end are left out, others are blanks") {
  CHECK(printable_line("rank 1\nalready\r\ndrained\n\r\n") == "rank 1 already  drained");
  CHECK(printable_line("\n") == "");
  CHECK(printable_line("\033c\tx") == R"(\u001bc\tx)");
}

TEST_CASE("printable_line: a long text is cut at 1024 bytes, between characters") {
  CHECK(max_printable_line == 1024);
  CHECK(printable_line(std::string(1024, 'x')) == std::string(1024, 'x'));
  CHECK(printable_line(std::string(1025, 'x')) == std::string(1021, 'x') + "...");
  // Units that take four bytes as a character, and six or three bytes once they are escaped or replaced.
  for (const std::string& unit : {"\U0001F600"s, "\033"s, "\xFF"s}) {
    for (std::size_t before = 0; before < 6; ++before) {
      std::string text(before, 'a');
      for (int i = 0; i < 2000; ++i) text += unit;
      const std::string shown = printable_line(text);
      CAPTURE(before);
      CHECK(shown.size() <= 1024);
      CHECK(shown.size() > 1024 - 6);
      CHECK(shown.ends_with("..."));
      CHECK_FALSE(find_invalid_utf8(shown));
      CHECK((shown.size() - 3 - before) % printable(unit).size() == 0);
      CHECK(printable_line(shown) == shown);
    }
  }
}

}  // namespace
}  // namespace resourced::json_text

// Columns that a text takes on a terminal, and texts for terminals without UTF-8.
#include "cli/views/text_width.hpp"

#include <sstream>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/screen/ascii_output.hpp"

using namespace resourced::cli::views;
using resourced::cli::screen::AsciiOutput;

TEST_SUITE("text width") {
  TEST_CASE("wide characters take two columns, combining ones none") {
    CHECK(width_of("") == 0);
    CHECK(width_of("node1") == 5);
    CHECK(width_of("Lüfter") == 6);
    CHECK(width_of("日本語") == 6);
    CHECK(width_of("한국") == 4);
    CHECK(width_of("e\u0301") == 1);
    CHECK(width_of("\u2705") == 2);
    CHECK(width_of("\U0001F525") == 2);
    CHECK(width_of("\u2714") == 1);
    CHECK(width_of("a\u200bb") == 2);
  }

  TEST_CASE("in ASCII a JSON text keeps its value, and a cut stays a cut") {
    const std::string text = "\"Lüfter \\n 日本 \U0001F525\"";
    const std::string plain = to_ascii(text);
    CHECK(plain.find_first_of("\x80\xc3\xe6\xf0") == std::string::npos);
    CHECK(nlohmann::json::parse(plain) == nlohmann::json::parse(text));
    CHECK(to_ascii("ab…") == "ab~");
    CHECK(to_ascii_in_place("ä日e\u0301…") == "???e~");
  }

  TEST_CASE("a stream of ASCII puts characters together that come in pieces") {
    std::ostringstream out;
    {
      AsciiOutput ascii(out);
      ascii << "L\xc3" << std::flush << "\xbc"
            << "fter" << '\n'
            << std::string("\xff!") << 7;
      CHECK(ascii.good());
    }
    CHECK(out.str() == "L\\u00fcfter\n\\ufffd!7");
  }

  TEST_CASE("a stream of ASCII fails with the one below") {
    std::ostringstream out;
    AsciiOutput ascii(out);
    out.setstate(std::ios::badbit);
    ascii << "x" << std::flush;
    CHECK(!ascii);
  }
}

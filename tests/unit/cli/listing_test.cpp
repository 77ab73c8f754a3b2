// Tables, user-defined formats, and JSON Lines.
#include "cli/views/listing.hpp"

#include <string>

#include <doctest/doctest.h>

#include "cli/commands/context.hpp"

using namespace resourced::cli::views;

namespace {

Listing sample() {
  Listing listing;
  listing.columns = {{"state", "STATE", true},
                     {"up", "UP"},
                     {"nnodes", "NNODES", true},
                     {"ranks", "RANKS", false, true},
                     {"nodelist", "NODELIST"}};
  listing.rows = {{"avail", true, 12, "0-11", "node[0-11]"}, {"offline", false, 1, "12", ""}};
  return listing;
}

std::string with_format(const std::string& format, bool no_header = true) {
  OutputOptions options;
  options.format = format;
  options.no_header = no_header;
  return render(sample(), options);
}

}  // namespace

TEST_SUITE("listing") {
  TEST_CASE("columns are aligned, hidden ones left out, lines have no blanks at their end") {
    CHECK(render(sample(), {}) ==
          "  STATE UP  NNODES NODELIST\n"
          "  avail yes     12 node[0-11]\n"
          "offline no       1\n");
  }

  TEST_CASE("-n leaves out the header, and its widths") {
    OutputOptions options;
    options.no_header = true;
    CHECK(render(sample(), options) ==
          "  avail yes 12 node[0-11]\n"
          "offline no   1\n");
  }

  TEST_CASE("a terminal gets symbols and colour, aligned all the same") {
    OutputOptions options;
    options.terminal = true;
    CHECK(render(sample(), options) ==
          "  STATE UP NNODES NODELIST\n"
          "  avail \u2714      12 node[0-11]\n"
          "\033[31moffline\033[0m \u2717       1\n");
  }

  TEST_CASE("a format shows its fields, hidden ones too") {
    CHECK(with_format("{state} {nnodes} {nodelist}") == "avail 12 node[0-11]\noffline 1\n");
    CHECK(with_format("{ranks}") == "0-11\n12\n");
    CHECK(with_format("{nnodes:>4}|{state:<8}|{up:4}|") == "  12|avail   |yes |\n   1|offline |no  |\n");
    CHECK(with_format("{{{nnodes}}}") == "{12}\n{1}\n");
    CHECK(with_format("x") == "x\nx\n");
    CHECK(with_format("{state:>8} {nnodes}", false) == "   STATE NNODES\n   avail 12\n offline 1\n");
  }

  TEST_CASE("a format that makes no sense is wrong usage") {
    for (const auto* format :
         {"{nothing}", "{state", "state}", "{}", "{state:x}", "{state:>}", "{state:99999}"}) {
      CAPTURE(format);
      CHECK_THROWS_AS(with_format(format), UsageError);
    }
    CHECK_THROWS_WITH(with_format("{nothing}"),
                      "unknown field {nothing} in the format, known are: state, up, nnodes, ranks, nodelist");
  }

  TEST_CASE("--json is one object for each row, with every field and its type") {
    OutputOptions options;
    options.json = true;
    CHECK(render(sample(), options) ==
          "{\"state\":\"avail\",\"up\":true,\"nnodes\":12,\"ranks\":\"0-11\",\"nodelist\":\"node[0-11]\"}\n"
          "{\"state\":\"offline\",\"up\":false,\"nnodes\":1,\"ranks\":\"12\",\"nodelist\":\"\"}\n");
  }

  TEST_CASE("a cell may have a text that is not its value") {
    Listing listing;
    listing.columns = {{"timestamp", "TIMESTAMP"}};
    listing.rows = {{Cell(1.5, "half past one")}};
    OutputOptions options;
    options.no_header = true;
    CHECK(render(listing, options) == "half past one\n");
    options.json = true;
    CHECK(render(listing, options) == "{\"timestamp\":1.5}\n");
  }
}

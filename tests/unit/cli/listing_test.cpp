// Tables, user-defined formats, and JSON Lines.
#include "cli/views/listing.hpp"

#include <cstddef>
#include <ctime>
#include <sstream>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>

#include "cli/commands/context.hpp"
#include "cli/views/text_width.hpp"
#include "cli/views/views.hpp"
#include "core/time.hpp"
#include "environment.hpp"

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

  TEST_CASE("a row needs a cell for each column") {
    Listing listing = sample();
    listing.rows.front().pop_back();
    OutputOptions options;
    CHECK_THROWS_AS(static_cast<void>(render(listing, options)), std::logic_error);
    options.format = "{nodelist}";
    CHECK_THROWS_AS(static_cast<void>(render(listing, options)), std::logic_error);
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
    options.symbols = options.colours = true;
    CHECK(render(sample(), options) ==
          "  STATE UP NNODES NODELIST\n"
          "  avail \u2714      12 node[0-11]\n"
          "\033[31moffline\033[0m \u2717       1\n");
  }

  TEST_CASE("wide characters keep the columns aligned, in ASCII as well") {
    Listing listing;
    listing.columns = {{"reason", "REASON"}, {"nodelist", "NODELIST"}};
    listing.rows = {{"日本", "a"}, {"e\u0301x", "b"}, {"disk", "c"}};
    CHECK(render(listing, {}) == "REASON NODELIST\n日本   a\ne\u0301x     b\ndisk   c\n");
    OutputOptions options;
    options.ascii = true;
    CHECK(render(listing, options) ==
          "REASON       NODELIST\n"
          "\\u65e5\\u672c a\n"
          "e\\u0301x     b\n"
          "disk         c\n");
  }

  TEST_CASE("where the width is bounded the widest texts are cut, numbers and short texts are not") {
    Listing listing;
    listing.columns = {
        {"state", "STATE", true}, {"nnodes", "NNODES", true}, {"ranks", "RANK"}, {"nodelist", "NODELIST"}};
    const std::string ranks = "0,2,4,6,8,10,12,14,16,18,20,22";
    listing.rows = {{"drained", 12, ranks, "n[" + ranks + "]"}, {"avail", 1, "1", "n1"}};
    OutputOptions options;
    options.columns = 40;
    CHECK(render(listing, options) ==
          "  STATE NNODES RANK         NODELIST\n"
          "drained     12 0,2,4,…20,22 n[0,2,…0,22]\n"
          "  avail      1 1            n1\n");
    options.ascii = true;
    CHECK(render(listing, options).find("0,2,4,~20,22 n[0,2,~0,22]\n") != std::string::npos);
    options.ascii = false;
    for (const std::size_t columns : {20U, 30U, 60U, 79U, 80U}) {
      options.columns = columns;
      std::istringstream lines(render(listing, options));
      for (std::string line; std::getline(lines, line);) CHECK(width_of(line) <= columns);
    }
    options.columns = 1000;
    const std::string whole = render(listing, options);
    CHECK(whole.find(ranks + " n[") != std::string::npos);
    options.columns = 40;
    options.wide = true;
    CHECK(render(listing, options) == whole);
    options.wide = false;
    options.format = "{ranks} {nodelist}";
    CHECK(render(listing, options).find(ranks + " n[") != std::string::npos);
  }

  TEST_CASE("lists of hosts are shortened in the middle, and before the reasons") {
    Listing listing;
    listing.columns = {{"reason", "REASON"}, {"nodelist", "NODELIST"}};
    listing.rows = {{"memory errors on bank 3", "node[0,2,4,6,8,10,12,14,16]"}};
    OutputOptions options;
    options.columns = 50;
    CHECK(render(listing, options) ==
          "REASON                  NODELIST\n"
          "memory errors on bank 3 node[0,2,4,6,…10,12,14,16]\n");
    options.columns = 40;
    CHECK(render(listing, options).ends_with("\nmemory errors on bank 3 node[0,2…,14,16]\n"));
    options.columns = 30;
    CHECK(render(listing, options).ends_with("\nmemory errors … node[0,…14,16]\n"));
  }

  TEST_CASE("elsewhere nothing is cut, and a row that is very long pads no other") {
    Listing listing;
    listing.columns = {{"ranks", "RANK"}, {"reason", "REASON"}, {"nodelist", "NODELIST"}};
    std::string scattered;
    for (int rank = 0; rank < 2 * 16384; rank += 2) scattered += (rank > 0 ? "," : "") + std::to_string(rank);
    listing.rows.push_back({scattered, "power", "n[" + scattered + "]"});
    for (int i = 0; i < 16384; ++i) listing.rows.push_back({std::to_string(2 * i + 1), "-", "n"});
    const std::string out = render(listing, {});
    CHECK(out.starts_with("RANK  REASON NODELIST\n" + scattered + " power  n[" + scattered + "]\n"));
    CHECK(out.ends_with("\n32767 -      n\n"));
    CHECK(out.size() < 16384 * 20 + 3 * scattered.size());
    OutputOptions options;
    options.format = "+:{ranks:<4.4} ?+:{reason} {nodelist}";
    CHECK(render(listing, options) == out);
  }

  TEST_CASE("a format shows its fields, hidden ones too") {
    CHECK(with_format("{state} {nnodes} {nodelist}") == "avail 12 node[0-11]\noffline 1\n");
    CHECK(with_format("{ranks}") == "0-11\n12\n");
    CHECK(with_format("{nnodes:>4}|{state:<8}|{up:4}|") == "  12|avail   |yes |\n   1|offline |no  |\n");
    CHECK(with_format("{{{nnodes}}}") == "{12}\n{1}\n");
    CHECK(with_format("{state:>8} {nnodes}", false) == "   STATE NNODES\n   avail 12\n offline 1\n");
  }

  TEST_CASE("a layout aligns, fills and cuts values, of which the title keeps its length") {
    CHECK(with_format("{state:*^11}|{nnodes:_>4}|") == "***avail***|__12|\n**offline**|___1|\n");
    CHECK(with_format("{state:<8.3}|{nodelist:.6+}|") == "ava     |node[+|\noff     ||\n");
    CHECK(with_format("{state:.4+} {nodelist:4h}|", false) ==
          "STATE NODELIST|\nava+ node[0-11]|\noff+ -   |\n");
    CHECK(with_format("{nodelist:.0+}|") == "|\n|\n");
  }

  TEST_CASE("?: leaves out a field that is empty in all rows, with the text before it") {
    Listing listing = sample();
    listing.columns.push_back({"note", "NOTE"});
    for (auto& row : listing.rows) row.emplace_back(nullptr, "-");
    OutputOptions options;
    options.format = "{state} ?:{note:<5} ?:{nodelist}, ?+:{note} ?+:{nnodes:>2}";
    CHECK(render(listing, options) == "STATE NODELIST NNODES\navail node[0-11]     12\noffline       1\n");
    listing.rows.clear();
    CHECK(render(listing, options) == "STATE\n");
  }

  TEST_CASE("+: widens a field, and the part of a value that it shows, to the widest row or title") {
    CHECK(with_format("+:{nodelist:<4.4}|") == "node[0-11]|\n          |\n");
    CHECK(with_format("+:{nnodes:>2}|", false) == "NNODES|\n    12|\n     1|\n");
    CHECK(with_format("+:{nnodes:>2}|") == "12|\n 1|\n");
  }

  TEST_CASE("sort: orders the rows: unset values, numbers, texts") {
    CHECK(with_format("sort:nnodes {state}") == "offline\navail\n");
    CHECK(with_format("sort:-nnodes{state}") == "avail\noffline\n");
    Listing listing;
    listing.columns = {{"a", "A"}, {"b", "B"}};
    listing.rows = {{"x", 1}, {"10", 2}, {"9", 3}, {nullptr, 4}, {"", 5}, {"9", 6}};
    OutputOptions options;
    options.no_header = true;
    options.format = "sort:a,-b, {b}";
    CHECK(render(listing, options) == "5\n4\n6\n3\n2\n1\n");
    listing.rows = {{"nan", 1}, {"7", 2}, {"inf", 3}, {"-", 4}, {"-inf", 5}, {"1e999", 6}, {"-7", 7}};
    options.format = "sort:a {b}";
    CHECK(render(listing, options) == "4\n7\n2\n5\n6\n3\n1\n");
  }

  TEST_CASE("!d shows a time in a form of strftime, !D as ISO 8601") {
    Listing listing;
    listing.columns = {{"timestamp", "TIME"}, {"reason", "REASON"}};
    listing.rows = {{Cell(1700000000.75, "then"), "fan"}, {Cell(nullptr, "-"), ""}};
    OutputOptions options;
    const resourced::test::Variable zone("TZ", "UTC");
    tzset();
    options.format = "{timestamp!d:%b%d %R::>12}|{timestamp!D}|{timestamp!d:%Y}|{timestamp!d:::h}";
    CHECK(render(listing, options) ==
          "        TIME|TIME|TIME|TIME\n"
          " Nov14 22:13|2023-11-14T22:13:20|2023|2023-11-14T22:13:20\n"
          "            |||-\n");
    options.no_header = true;
    const std::string long_text(1000, 'x');
    options.format = "{timestamp!d:" + long_text + "}|{timestamp!d:%%}";
    CHECK(render(listing, options) == long_text + "|%\n|\n");
    options.format = "{timestamp!d:%9999Y}";
    CHECK_THROWS_WITH_AS(static_cast<void>(render(listing, options)),
                         "a time in the form \"%9999Y\" is too long", UsageError);
    options.format = "{reason!d}";
    CHECK_THROWS_WITH_AS(static_cast<void>(render(listing, options)),
                         "the format converts \"fan\" to a time, which it is not", UsageError);
  }

  TEST_CASE("a format that makes no sense is wrong usage") {
    for (const auto* format : {"{nothing}", "{state", "state}", "{}", "{state:x}", "{state:99999}",
                               "{state:.}", "{state:.30x}", "{state!r}", "{state!d", "sort:nothing {state}",
                               "sort:state", "{nnodes:08}", "{nnodes:>0}", "{state:+h}"}) {
      CAPTURE(format);
      CHECK_THROWS_AS(with_format(format), UsageError);
    }
    CHECK_THROWS_WITH(
        with_format("{nnodes:08}"),
        "bad layout in {nnodes:08}: expected [[FILL]ALIGN][WIDTH][.LENGTH][h][+] after the colon: "
        "ALIGN is <, > or ^, FILL the character that fills, WIDTH from 1 to 1000, LENGTH where a "
        "value is cut, h a - for an empty value, and + behind it a mark for a cut one");
    CHECK_THROWS_WITH(
        with_format("long"),
        "the format \"long\" has no field: write fields in braces, {state}; known are: state, up, "
        "nnodes, ranks, nodelist");
    CHECK_THROWS_AS(with_format("{{state}}"), UsageError);
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

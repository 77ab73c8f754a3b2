// Formats of -o with a name, also those of the user's file.
#include "cli/commands/named_formats.hpp"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"
#include "core/error.hpp"
#include "environment.hpp"
#include "program_fixture.hpp"
#include "run_program.hpp"
#include "temp_dir.hpp"

using namespace resourced;
using cli::commands::default_format;
using cli::commands::find_format;
using cli::commands::format_names;

namespace {

/// A home of configuration for the time of a test case.
struct ConfigHome {
  ConfigHome() { std::filesystem::create_directories(directory.file("resourced")); }

  void write(const std::string& text) const { std::ofstream(file) << text; }

  test::TempDir directory;
  test::Variable home{"XDG_CONFIG_HOME", directory.file("")};
  std::string file = directory.file("") + "/resourced/resourcectl.toml";
};

}  // namespace

TEST_SUITE("named formats") {
  TEST_CASE_FIXTURE(ConfigHome, "formats of the program and of the user's file") {
    write(
        "[status.formats.mine]\nformat = '{nodelist}'\n"
        "[property-list.formats.short]\nformat = '{property}'\ndescription = 'Names'\n");
    CHECK(find_format("status", "{state}") == "{state}");
    CHECK(find_format("status", "default").empty());
    CHECK(find_format("status", "mine") == "{nodelist}");
    CHECK(find_format("status", "long").find("{reason") != std::string::npos);
    CHECK(find_format("property list", "short") == "{property}");
    CHECK(format_names("status") == std::vector<std::string>{"default", "long", "mine", "help"});
    CHECK(format_names("list") == std::vector<std::string>{"default", "rlist", "queues", "help"});
    const auto help = test::run({"property", "list", "-o", "help"});
    CHECK(help.status == 0);
    CHECK(help.out == "default      The standard table\nshort        Names: {property}\n");
    const auto unknown = test::run({"list", "-o", "mine"});
    CHECK(unknown.status == 2);
    CHECK(unknown.err ==
          "resourcectl: no format \"mine\": known are default, rlist, queues, help; or write fields in "
          "braces, such as "
          "{nodelist}\n");
  }

  TEST_CASE_FIXTURE(ConfigHome, "-o get-config prints a format as a file has it") {
    write("[status.formats.'a b']\nformat = '\"{nodelist}\"\\n'\n");
    const auto own = test::run({"status", "-o", "get-config=a b"});
    CHECK(own.status == 0);
    CHECK(own.out == "[status.formats.\"a b\"]\nformat = \"\\\"{nodelist}\\\"\\\\n\"\n");
    const auto of_program = test::run({"list", "-o", "get-config=rlist"});
    CHECK(of_program.status == 0);
    // The lines are a file with the same format under another name.
    const std::string mine = "[list.formats.mine]" + of_program.out.substr(of_program.out.find('\n'));
    write(mine);
    CHECK(find_format("list", "mine") == find_format("list", "rlist"));
    CHECK(test::run({"list", "-o", "get-config=mine"}).out == mine);
    CHECK(test::run({"status", "-o", "get-config=default"}).err ==
          "resourcectl: -o get-config=default: the standard table is no format\n");
    CHECK(test::run({"status", "-o", "get-config=x"})
              .err.starts_with("resourcectl: no format \"get-config=x\""));
  }

  TEST_CASE_FIXTURE(ConfigHome, "a variable of the environment has the default format of a command") {
    write("[status.formats.mine]\nformat = '{nodelist}'\n");
    const test::Variable unset("RESOURCED_STATUS_FORMAT_DEFAULT", std::nullopt);
    CHECK(default_format("status").empty());
    for (const auto& [value, format] : {std::pair("mine", "{nodelist}"), std::pair("{ranks}", "{ranks}"),
                                        std::pair("default", ""), std::pair("", "")}) {
      const test::Variable variable("RESOURCED_STATUS_FORMAT_DEFAULT", value);
      CHECK(default_format("status") == format);
      CHECK(default_format("list").empty());
    }
    const test::Variable wrong("RESOURCED_STATUS_FORMAT_DEFAULT", "nosuch");
    CHECK_THROWS_AS(static_cast<void>(default_format("status")), cli::views::UsageError);
    CHECK(test::run({"status"})
              .err.starts_with("resourcectl: $RESOURCED_STATUS_FORMAT_DEFAULT: no format \"nosuch\": known "
                               "are default, long, mine"));
    for (const char* answer : {"help", "get-config=mine"}) {
      const test::Variable variable("RESOURCED_STATUS_FORMAT_DEFAULT", answer);
      const auto refused = test::run({"status"});
      CHECK(refused.status == 2);
      CHECK(refused.out.empty());
      CHECK(refused.err ==
            fmt::format("resourcectl: $RESOURCED_STATUS_FORMAT_DEFAULT: {} is no format\n", answer));
    }
  }

  TEST_CASE_FIXTURE(ConfigHome, "the formats of this program keep their columns with long values") {
    auto status = nlohmann::json::parse(test::status_payload);
    status["drain"] = {{"0,2,4,6", {{"timestamp", 1700000000.0}, {"reason", "fan"}}},
                       {"7", {{"timestamp", 1700000001.0}, {"reason", ""}}}};
    status["allocated"] = "0-7";
    status["online"] = "0-6";
    status["offline"] = "7";
    status["exclude"] = "";
    const auto show = [](const cli::views::Listing& listing, const std::string& format) {
      cli::views::OutputOptions options;
      options.format = format;
      return cli::views::render(listing, options);
    };
    const test::Variable zone("TZ", "UTC");
    tzset();
    cli::views::ViewFilter filter;
    filter.by_reason = true;
    CHECK(show(cli::views::status_view(status, filter), find_format("status", "long")) ==
          "    STATE UP  NNODES REASON                         NODELIST\n"
          "    avail yes      3                                node[1,3,5]\n"
          " draining no       4 fan                            node[0,2,4,6]\n"
          "draining* no       1                                node7\n");
    status["drain"]["0,2,4,6"]["reason"] = "";
    CHECK(show(cli::views::drain_view(status), find_format("drain", "long")) ==
          "TIMESTAMP    STATE     RANK     NODELIST\n"
          "Nov14 22:13  draining  0,2,4,6  node[0,2,4,6]\n"
          "Nov14 22:13  draining* 7        node7\n");
    auto authored = status;
    authored["drain"]["0,2,4,6"].update({{"reason", "longer than its column"}, {"by", {{"userid", 0}}}});
    CHECK(show(cli::views::drain_view(authored, {}, [](std::uint32_t) { return "root"; }),
               find_format("drain", "sinfo")) ==
          "REASON               USER      TIMESTAMP           NODELIST\n"
          "longer than its colu root      2023-11-14T22:13:20 node[0,2,4,6]\n"
          "                     -         2023-11-14T22:13:21 node7\n");
    std::string scattered;
    for (int rank = 0; rank < 10; rank += 2) scattered += (rank > 0 ? "," : "") + std::to_string(rank);
    cli::views::Listing drains = cli::views::drain_view(status);
    drains.rows.front()[2] = scattered;
    CHECK(show(drains, find_format("drain", "long")).find(" 0,2,4,6+ node[") != std::string::npos);
  }

  TEST_CASE_FIXTURE(ConfigHome, "a wrong file is one line with its place, for a name only") {
    const auto check = [&](const std::string& text, const std::string& error) {
      write(text);
      CHECK(find_format("status", "{state}") == "{state}");
      CHECK_THROWS_WITH_AS(static_cast<void>(find_format("status", "x")), (file + error).c_str(), Error);
    };
    check("[status.formats.x]\ndescription = 'y'\n",
          ":1: status.formats.x: expected format = \"...\" with fields in braces");
    check("\n[status.formats.long]\nformat = '{state}'\n", ":2: status.formats.long: the name is taken");
    write("[");
    CHECK_THROWS_AS(static_cast<void>(find_format("status", "x")), Error);
    CHECK_THROWS_AS(static_cast<void>(find_format("status", "help")), Error);
  }

  TEST_CASE_FIXTURE(ConfigHome, "a wrong file takes away no name of this program") {
    for (const char* text :
         {"[", "[status.formats.x]\nformat = 'y'\n",
          "[status.formats.mine]\nformat = '{state}'\n[status.formats.long]\nformat = '{up}'\n"}) {
      CAPTURE(text);
      write(text);
      CHECK(find_format("status", "default").empty());
      CHECK(find_format("status", "long").find("{reason") != std::string::npos);
      CHECK(format_names("status") == std::vector<std::string>{"default", "long", "help"});
      const auto completed = test::run({"__complete", "--", "status", "-o", ""});
      CHECK(completed.status == 0);
      CHECK(completed.out.find("{state}") != std::string::npos);
      CHECK(completed.out.find("long") != std::string::npos);
    }
  }

  TEST_CASE_FIXTURE(ConfigHome, "-o help shows control characters of the file as escapes") {
    write(
        "[info.formats]\n[list.formats.\"\\u001b[2J\"]\nformat = \"{state}\\n{up}\"\ndescription = "
        "\"a\\u0007b\"\n");
    const auto help = test::run({"list", "-o", "help"});
    CHECK(help.status == 0);
    CHECK(help.out.find('\x1b') == std::string::npos);
    CHECK(help.out.find('\a') == std::string::npos);
    CHECK(help.out.find("\\u001b[2J") != std::string::npos);
    CHECK(help.out.find("a\\u0007b: {state} {up}\n") != std::string::npos);
  }
}

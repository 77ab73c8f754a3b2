// Formats of -o with a name, also those of the user's file.
#include "cli/commands/named_formats.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/commands/context.hpp"
#include "core/error.hpp"
#include "run_program.hpp"
#include "temp_dir.hpp"

using namespace resourced;
using cli::commands::find_format;
using cli::commands::format_names;

namespace {

/// A home of configuration for the time of a test case.
struct ConfigHome {
  ConfigHome() {
    std::filesystem::create_directories(directory.file("resourced"));
    setenv("XDG_CONFIG_HOME", directory.file("").c_str(), 1);
  }
  ~ConfigHome() { unsetenv("XDG_CONFIG_HOME"); }
  ConfigHome(const ConfigHome&) = delete;
  ConfigHome& operator=(const ConfigHome&) = delete;

  void write(const std::string& text) const { std::ofstream(file) << text; }

  test::TempDir directory;
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
    CHECK(format_names("list") == std::vector<std::string>{"default", "rlist", "help"});
    const auto help = test::run({"property", "list", "-o", "help"});
    CHECK(help.status == 0);
    CHECK(help.out == "default      The standard table\nshort        Names: {property}\n");
    const auto unknown = test::run({"list", "-o", "mine"});
    CHECK(unknown.status == 2);
    CHECK(
        unknown.err ==
        "resourcectl: no format \"mine\": known are default, rlist, help; or write fields in braces, such as "
        "{nodelist}\n");
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
  }
}

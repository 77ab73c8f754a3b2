// Log lines for terminals and for journald (sd-daemon(3)).
#include "os/log.hpp"

#include <sstream>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "environment.hpp"

using resourced::os::Level;

namespace {

std::string logged(Level level) {
  std::ostringstream out;
  resourced::os::log_to("program", out);
  resourced::os::set_log_level(Level::trace);
  resourced::os::log(level, "text", {});
  return out.str();
}

}  // namespace

TEST_CASE("with JOURNAL_STREAM a line has the priority of syslog, and no time") {
  const resourced::test::Variable collected("JOURNAL_STREAM", "8:1");
  CHECK(logged(Level::trace) == "<7>text\n");
  CHECK(logged(Level::debug) == "<7>text\n");
  CHECK(logged(Level::info) == "<6>text\n");
  CHECK(logged(Level::warning) == "<4>text\n");
  CHECK(logged(Level::error) == "<3>text\n");
  CHECK(logged(Level::critical) == "<2>text\n");
}

TEST_CASE("otherwise it has a time with its zone, and the level") {
  const resourced::test::Variable collected("JOURNAL_STREAM", std::nullopt);
  const std::string line = logged(Level::warning);
  // 2026-01-31T12:00:00.000+01:00
  constexpr std::size_t time = 29;
  REQUIRE(line.size() > time);
  CHECK(line.substr(time) == " warning: text\n");
  CHECK(line.at(10) == 'T');
}

TEST_CASE("lines below the level are left out, and a line is formatted") {
  const resourced::test::Variable collected("JOURNAL_STREAM", "8:1");
  std::ostringstream out;
  resourced::os::log_to("program", out);
  resourced::os::set_log_level(Level::warning);
  resourced::os::log_info("{}", 1);
  resourced::os::log_warning("{} of {}", std::string("two"), 3.5);
  CHECK(out.str() == "<4>two of 3.5\n");
}

TEST_CASE("a function gets lines as they are, with their level") {
  std::string got;
  resourced::os::log_to("program", [&got](Level level, std::string_view line) {
    got += std::to_string(static_cast<int>(level)) + ":" + std::string(line) + ";";
  });
  resourced::os::set_log_level(Level::info);
  resourced::os::log_error("a {}", "b");
  resourced::os::log_debug("c");
  CHECK(got == "4:a b;");
}

TEST_CASE("levels have the names that the configuration has") {
  CHECK(resourced::os::parse_level("warning") == Level::warning);
  CHECK(resourced::os::parse_level("off") == Level::off);
  CHECK_THROWS_AS(static_cast<void>(resourced::os::parse_level("loud")), resourced::Error);
}

// Log lines for terminals and for journald (sd-daemon(3)).
#include "os/log.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <sstream>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

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
  // The length of a time such as 2026-01-31T12:00:00.000+01:00.
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

TEST_CASE("lines that nobody reads wait up to a bound, and later ones are counted and left out") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    resourced::os::log_to_stderr("program");
    resourced::os::set_log_level(Level::info);
    // 8 MiB of lines, while nobody reads.
    const std::string text(1024, 'x');
    for (int i = 0; i < 8192; ++i) resourced::os::log_info("{} {}", i, text);
    const bool has_dropped = resourced::os::log_lines_dropped() > 0;
    ::raise(SIGSTOP);
    for (int i = 0; i < 60; ++i) resourced::os::flush_log();
    resourced::os::log_info("the last of {}", has_dropped ? "many" : "all");
    // Each call waits for a second at most, but the reader may be slow.
    for (int i = 0; i < 60; ++i) resourced::os::flush_log();
    ::_exit(0);
  }
  ::close(ends[1]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  REQUIRE(WIFSTOPPED(status));
  ::kill(child, SIGCONT);
  std::string log;
  std::array<char, 65536> part{};
  for (ssize_t size = 0; (size = ::read(ends[0], part.data(), part.size())) > 0;)
    log.append(part.data(), static_cast<std::size_t>(size));
  ::close(ends[0]);
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  const auto lines = std::count(log.begin(), log.end(), '\n');
  CHECK(lines > 3000);
  CHECK(lines < 8192);
  CHECK(log.find("lines of the log are left out here") != std::string::npos);
  CHECK(log.ends_with("the last of many\n"));
}

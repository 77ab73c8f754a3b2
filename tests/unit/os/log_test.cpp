// Log lines for terminals and for journald (sd-daemon(3)).
#include <memory>
#include <sstream>
#include <string>

#include <doctest/doctest.h>
#include <spdlog/sinks/ostream_sink.h>

#include "environment.hpp"
#include "os/service.hpp"

using resourced::os::make_log;

namespace {

std::string logged(spdlog::level::level_enum level) {
  std::ostringstream out;
  const auto log = make_log("program", std::make_shared<spdlog::sinks::ostream_sink_st>(out));
  log->set_level(spdlog::level::trace);
  log->log(level, "text");
  return out.str();
}

}  // namespace

TEST_CASE("with JOURNAL_STREAM a line has the priority of syslog, and no time") {
  const resourced::test::Variable collected("JOURNAL_STREAM", "8:1");
  CHECK(logged(spdlog::level::trace) == "<7>text\n");
  CHECK(logged(spdlog::level::debug) == "<7>text\n");
  CHECK(logged(spdlog::level::info) == "<6>text\n");
  CHECK(logged(spdlog::level::warn) == "<4>text\n");
  CHECK(logged(spdlog::level::err) == "<3>text\n");
  CHECK(logged(spdlog::level::critical) == "<2>text\n");
}

TEST_CASE("otherwise it has a time with its zone, and the level") {
  const resourced::test::Variable collected("JOURNAL_STREAM", std::nullopt);
  const std::string line = logged(spdlog::level::warn);
  // 2026-01-31T12:00:00.000+01:00
  constexpr std::size_t time = 29;
  REQUIRE(line.size() > time);
  CHECK(line.substr(time) == " warning: text\n");
  CHECK(line.at(10) == 'T');
}

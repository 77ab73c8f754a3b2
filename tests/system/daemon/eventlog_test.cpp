// resourcectl eventlog for people and scripts: the last events, periods of time, following over restarts of
// the daemon, cursors, and terminals.
#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fixture.hpp"
#include "harness/terminal.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

std::vector<std::string> last_of(std::vector<std::string> lines, std::size_t count) {
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  return lines;
}

/// The reasons of the drains in lines of JSON.
std::vector<std::string> reasons(const std::vector<std::string>& lines) {
  std::vector<std::string> found;
  for (const std::string& line : lines) {
    const json event = json::parse(line);
    if (event["name"] == "drain") found.push_back(event["context"]["reason"]);
  }
  return found;
}

using Texts = std::vector<std::string>;

/// A log of so many drains and undrains in turn, ten a second, from 2001 on.
std::string past(unsigned count) {
  std::string log;
  for (unsigned i = 0; i < count; ++i) {
    log += fmt::format(
        R"({{"timestamp":{:.1f},"name":"{}","context":{{"idset":"{}","nodelist":"test{}","overwrite":0}}}})"
        "\n",
        1000000000 + i * 0.1, i % 2 == 0 ? "drain" : "undrain", i / 2 % 8, i / 2 % 8);
  }
  return log;
}

TEST_SUITE_BEGIN("eventlog");

TEST_CASE("-n prints the last events, however many there are and whatever else is asked for") {
  TempDir dir;
  const std::string config = "[resource]\njournal-max = 100000\n" + std::string(eight_nodes);
  REQUIRE(import_log(dir, config, dir.write("log", past(5000))).status == 0);
  Daemon daemon(dir, {.config = config});
  const Ctl ctl(daemon.uri());
  for (const Texts& more :
       {Texts{}, Texts{"-i", "test7"}, Texts{"--since", "1000000400"}, Texts{"--until", "1000000300.5"},
        Texts{"-i", "test1", "--until", "1000000300"}, Texts{"--json", "--allocations"}}) {
    CAPTURE(json(more).dump());
    Texts whole{"eventlog", "--since", "0"};
    whole.insert(whole.end(), more.begin(), more.end());
    if (more.size() > 1 && more[0] == "--since") whole.erase(whole.begin() + 1, whole.begin() + 3);
    const auto all = lines_of(ctl.output(whole));
    REQUIRE(all.size() > 100);
    for (const std::size_t count : {1, 2, 7, 150, 900, 100000}) {
      CAPTURE(count);
      Texts command = whole;
      command.insert(command.end(), {"-n", std::to_string(count)});
      CHECK(lines_of(ctl.output(command)) == last_of(all, count));
    }
  }
  // Without --since the history is the last journal-max events; with -n it has all that are kept.
  CHECK(lines_of(ctl.output({"eventlog", "-n", "100000"})).size() == 5002);
  CHECK(ctl.run({"eventlog", "-n", "0"}).status == 2);
}

TEST_CASE("-n reads a stretch of the history and not all of it") {
  TempDir dir;
  const std::string config = "[resource]\njournal-max = 200000\n" + std::string(eight_nodes);
  REQUIRE(import_log(dir, config, dir.write("log", past(100000))).status == 0);
  Daemon daemon(dir, {.config = config});
  RawClient client(daemon.uri());
  const auto served = [&] {
    return client.call("resource.stats-get").json()["requests"]["resource.journal"]["succeeded"].get<int>();
  };
  CHECK(lines_of(Ctl(daemon.uri()).output({"eventlog", "-n", "20"})).size() == 20);
  // One request for the number of the last event, and one for a stretch of 100 events.
  CHECK(served() == 2);
}

TEST_CASE("-n and -F together: the last events, and then new ones") {
  Cluster cluster;
  for (int i = 0; i < 4; ++i) cluster.drain(std::to_string(i), fmt::format("r{}", i));
  const auto follower = cluster.ctl.start({"eventlog", "-F", "-n", "2", "--json"});
  Texts lines{follower->expect_line(), follower->expect_line()};
  cluster.drain("7", "new");
  lines.push_back(follower->expect_line());
  CHECK(reasons(lines) == Texts{"r2", "r3", "new"});
}

TEST_CASE("--since and --until take durations and dates") {
  TempDir dir;
  const std::string config(eight_nodes);
  REQUIRE(import_log(dir, config, dir.write("log", past(100))).status == 0);
  Daemon daemon(dir, {.config = config, .environment = {{"TZ", "UTC"}}});
  const Ctl ctl(daemon.uri());
  const auto count = [&](const Texts& options) {
    Texts command{"eventlog"};
    command.insert(command.end(), options.begin(), options.end());
    return lines_of(ctl.output(command)).size();
  };
  CHECK(count({"--since", "1000000001", "--until", "1000000002"}) == 11);
  // Text with whole seconds means each time that is shown as that second: half a second before and after it.
  CHECK(count({"--since", "2001-09-09T01:46:41Z", "--until", "2001-09-09T01:46:42Z"}) == 20);
  CHECK(count({"--since", "2001-09-09T01:46:41.000Z", "--until", "2001-09-09T01:46:42.000Z"}) == 11);
  CHECK(count({"--since", "1970-01-01T00:00:00Z", "--until", "1d"}) == 100);
  CHECK(count({"--until", "1d"}) == 100);
  CHECK(count({"--since", "1d", "--until", "+1d"}) == 2);
  CHECK(count({"--until", "1000"}) == 0);
  const Outcome unknown = ctl.run({"eventlog", "-w", "drian"});
  CHECK(unknown.status == 2);
  CHECK(unknown.err.find("unknown event \"drian\": did you mean drain? known are ") != std::string::npos);
  CHECK(ctl.run({"eventlog", "-w", "alloc"}).status == 2);
  const Outcome wrong = ctl.run({"eventlog", "--until", "soon"});
  CHECK(wrong.status == 2);
  CHECK(wrong.err.find("bad time \"soon\"") != std::string::npos);
  CHECK(ctl.run({"eventlog", "--until", "1d", "-F"}).status == 2);
}

TEST_CASE("with -i a program gets the events of these targets as they are") {
  Cluster cluster;
  cluster.drain("1-5", "disk");
  cluster.ctl.done({"property", "add", "fast", "0-7"});
  for (const char* targets : {"test[2-3]", "2-3"}) {
    const auto lines = lines_of(cluster.ctl.output({"eventlog", "-i", targets, "--json"}));
    REQUIRE(lines.size() == 3);
    const json restart = json::parse(lines[0])["context"];
    CHECK(restart["ranks"] == "0-7");
    CHECK(restart["online"] == "0-7");
    CHECK(restart["nodelist"] == "test[0-7]");
    CHECK(json::parse(lines[1])["context"]["idset"] == "1-5");
    CHECK(json::parse(lines[1])["context"]["nodelist"] == "test[1-5]");
    CHECK(json::parse(lines[2])["context"]["property-add"] == json{{"fast", "0-7"}});
    const auto texts = lines_of(cluster.ctl.output({"eventlog", "-i", targets}));
    REQUIRE(texts.size() == 3);
    CHECK(texts[1].find(" drain idset=\"1-5\" nodelist=\"test[1-5]\"") != std::string::npos);
  }
}

TEST_CASE("-F goes on over kills and restarts of the daemon, without gap and without double") {
  Cluster cluster;
  const auto follower = cluster.ctl.start({"eventlog", "-F", "--json"});
  Texts lines;
  const auto read_until = [&](const std::string& reason) {
    while (lines.empty() || lines.back().find(fmt::format("\"reason\":\"{}\"", reason)) == std::string::npos)
      lines.push_back(follower->expect_line());
  };
  for (int round = 0; round < 6; ++round) {
    CAPTURE(round);
    RawClient admin(cluster.daemon.uri());
    const auto drain = [&](const std::string& reason) {
      const json payload{{"targets", "4"}, {"reason", reason}, {"mode", "overwrite"}};
      REQUIRE(admin.call("resource.drain", payload).errnum == 0);
    };
    drain(fmt::format("before {}", round));
    // In every other round the daemon ends before the event was read.
    if (round % 2 == 0) read_until(fmt::format("before {}", round));
    drain(fmt::format("at the end {}", round));
    if (round % 3 == 0) {
      CHECK(cluster.daemon.terminate() == 0);
    } else {
      cluster.daemon.kill();
    }
    cluster.daemon.start();
  }
  RawClient admin(cluster.daemon.uri());
  REQUIRE(admin.call("resource.drain", {{"targets", "5"}, {"reason", "last"}}).errnum == 0);
  read_until("last");
  CHECK(lines == lines_of(cluster.ctl.output({"eventlog", "--json"})));
  follower->signal(SIGTERM);
  const Outcome outcome = follower->finish();
  CHECK(outcome.status == 0);
  CHECK(outcome.err.find("waiting for the daemon\nresourcectl: following again\n") != std::string::npos);
}

TEST_CASE("-F tells events that the daemon does not keep any more by truncate") {
  TempDir dir;
  const std::string keep_all(eight_nodes);
  REQUIRE(import_log(dir, keep_all, dir.write("log", past(100))).status == 0);
  Daemon daemon(dir, {.config = keep_all});
  const std::string cursor = dir / "cursor";
  dir.write("cursor", "{\"after\":10}\n");
  daemon.configure("[store]\nhistory = \"5d\"\n" + keep_all);
  daemon.terminate();
  daemon.start();
  const Ctl ctl(daemon.uri());
  RawClient client(daemon.uri());
  // The daemon goes on trimming after its start.
  for (const Deadline deadline; history(client, {{"since", 0}}).front()["name"] != "truncate";)
    REQUIRE_FALSE(deadline.passed());
  const auto lines = lines_of(ctl.output({"eventlog", "--cursor", cursor, "--json"}));
  REQUIRE_FALSE(lines.empty());
  CHECK(json::parse(lines[0])["name"] == "truncate");
}

TEST_CASE("a run with a cursor prints what came since the last one") {
  Cluster cluster;
  const std::string cursor = cluster.dir / "cursor";
  const auto print = [&](const Texts& more = {}) {
    Texts command{"eventlog", "--json", "--cursor", cursor};
    command.insert(command.end(), more.begin(), more.end());
    return reasons(lines_of(cluster.ctl.output(command)));
  };
  cluster.drain("1", "one");
  CHECK(print() == Texts{"one"});
  CHECK(print().empty());
  cluster.drain("2", "two");
  cluster.drain("3", "three");
  cluster.daemon.kill();
  cluster.daemon.start();
  RawClient admin(cluster.daemon.uri());
  REQUIRE(admin.call("resource.drain", {{"targets", "4"}, {"reason", "four"}}).errnum == 0);
  CHECK(print() == Texts{"two", "three", "four"});
  // Events that a filter leaves out count as seen.
  REQUIRE(admin.call("resource.drain", {{"targets", "5"}, {"reason", "five"}}).errnum == 0);
  CHECK(print({"-i", "test1"}).empty());
  CHECK(print().empty());

  // A follower updates the cursor, too.
  const auto follower = cluster.ctl.start({"eventlog", "--json", "-F", "--cursor", cursor});
  REQUIRE(admin.call("resource.drain", {{"targets", "6"}, {"reason", "six"}}).errnum == 0);
  CHECK(reasons({follower->expect_line()}) == Texts{"six"});
  REQUIRE(admin.call("resource.drain", {{"targets", "7"}, {"reason", "seven"}}).errnum == 0);
  CHECK(reasons({follower->expect_line()}) == Texts{"seven"});
  follower->signal(SIGTERM);
  CHECK(follower->finish().status == 0);
  CHECK(print().empty());
}

TEST_CASE("a cursor stays where it is when the events could not be printed, or it is not one of this log") {
  Cluster cluster;
  const std::string cursor = cluster.dir / "cursor";
  cluster.drain("1", "one");
  const std::string full = "/dev/full";
  Process lost({"/bin/sh", "-c",
                fmt::format("exec {}/resourcectl --uri {} eventlog --cursor {} >/dev/full", RESOURCED_BIN,
                            cluster.daemon.uri(), cursor)});
  const Outcome outcome = lost.finish();
  CHECK(outcome.status == 1);
  CHECK(outcome.err == "resourcectl: cannot write to standard output\n");
  CHECK_FALSE(std::filesystem::exists(cursor));

  const Texts command{"eventlog", "--cursor", cursor};
  cluster.dir.write("cursor", "{\"after\":4000}\n");
  const Outcome other = cluster.ctl.run(command);
  CHECK(other.status == 1);
  CHECK(other.err ==
        fmt::format("resourcectl: {}: after: there is no event 4000: {} has another event log than "
                    "before\n",
                    cursor, cluster.daemon.uri()));
  cluster.dir.write("cursor", "half a curs");
  const Outcome corrupt = cluster.ctl.run(command);
  CHECK(corrupt.status == 1);
  CHECK(corrupt.err ==
        fmt::format("resourcectl: {}: not a cursor of eventlog; remove the file to begin anew\n", cursor));
  CHECK(corrupt.out.empty());
  for (const Texts& more : {Texts{"-n", "1"}, Texts{"-w", "drain"}, Texts{"--until", "1d"}}) {
    Texts both = command;
    both.insert(both.end(), more.begin(), more.end());
    CHECK(cluster.ctl.run(both).status == 2);
  }
}

TEST_CASE("a terminal gets local times, and -T either form") {
  Cluster cluster;
  const auto line_at_terminal = [&](const Texts& command) {
    AtTerminal terminal(cluster.daemon.uri(), command);
    CHECK(terminal.finish() == 0);
    return terminal.shown();
  };
  const json restart = json::parse(lines_of(cluster.ctl.output({"eventlog", "--json"}))[0]);
  const std::string raw = fmt::format("{:.6f} restart", restart["timestamp"].get<double>());
  const auto seconds = static_cast<std::time_t>(std::round(restart["timestamp"].get<double>()));
  std::array<char, 32> local{};
  std::tm parts{};
  REQUIRE(std::strftime(local.data(), local.size(), "%Y-%m-%dT%H:%M:%S", localtime_r(&seconds, &parts)) > 0);
  CHECK(line_at_terminal({"eventlog"}).starts_with(local.data()));
  CHECK(line_at_terminal({"eventlog", "-T", "raw"}).starts_with(raw));
  CHECK(cluster.ctl.output({"eventlog"}).starts_with(raw));
  CHECK(cluster.ctl.output({"eventlog", "-T", "iso"}).starts_with(local.data()));
  CHECK(cluster.ctl.run({"eventlog", "-T", "epoch"}).status == 2);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

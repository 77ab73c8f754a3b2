// Export and import, with which an operator moves a store: changes of run time are preserved.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("import");

TEST_CASE("what was changed at run time is so after export and import") {
  const std::string config =
      std::string(eight_nodes) + "[[resource.config]]\nhosts = \"test7\"\nproperties = [\"slow\"]\n";
  Cluster cluster{DaemonOptions{.config = config}};
  cluster.drain("1-3", "disk");
  cluster.ctl.done({"property", "add", "fast", "1-2"});
  cluster.ctl.done({"property", "add", "back", "4"});
  cluster.ctl.done({"property", "remove", "back", "4"});
  cluster.ctl.done({"property", "remove", "slow", "7"});
  cluster.ctl.done({"expiration", "set", "4102444800"});
  cluster.ctl.done({"shrink", "3"});
  cluster.daemon.kill();
  cluster.daemon.start();
  RawClient before(cluster.daemon.uri());
  const Ctl ctl(cluster.daemon.uri());
  ctl.done({"property", "add", "late", "5"});
  const json status = before.call("resource.status").json();
  REQUIRE(status["R"]["execution"]["expiration"] == 4102444800);
  REQUIRE(status["R"]["execution"]["properties"] == json{{"fast", "1-2"}, {"late", "5"}});
  const json of_host = history(before, {{"targets", "test5"}});

  TempDir dir;
  const Outcome imported = import_log(dir, config, dir.write("log", ctl.output({"eventlog", "--export"})));
  CHECK(imported.err == "");
  REQUIRE(imported.status == 0);
  const Daemon second(dir, {.config = config});
  RawClient after(second.uri());
  const json status_there = after.call("resource.status").json();
  CHECK(status_there["R"] == status["R"]);
  CHECK(status_there["drain"] == status["drain"]);
  const json of_host_there = history(after, {{"targets", "test5"}});
  REQUIRE(of_host_there.size() > of_host.size());
  for (std::size_t i = 0; i < of_host.size(); ++i) CHECK(of_host_there[i] == of_host[i]);
}

/// Runs `resourced --export --complete` on the state directory in `dir`.
Outcome export_complete(const TempDir& dir) {
  return Process(resourced_command({"--config", dir.write("resourced.toml", std::string(eight_nodes)),
                                    "--state", dir / "state", "--export", "--complete"}))
      .finish();
}

TEST_CASE("a complete export of a running daemon becomes a store that has lost nothing") {
  Cluster cluster;
  const json whole = cluster.status()["R"];
  cluster.drain("1-2", "disk");
  cluster.ctl.done({"drain", "--from", "2100-01-01T00:00", "5", "later"});
  cluster.ctl.done({"shrink", "3"});
  json loaded = whole;
  loaded["execution"]["properties"] = {{"loaded", "0-7"}};
  cluster.ctl.done({"reload", "--force", cluster.dir.write("R.json", loaded.dump())});
  cluster.ctl.done({"property", "add", "late", "4"});
  cluster.ctl.done({"shrink", "6"});
  const json status = cluster.status();
  REQUIRE(status["R"]["execution"]["properties"].contains("loaded"));
  const Outcome written = export_complete(cluster.dir);
  CHECK(written.err == "");
  REQUIRE(written.status == 0);

  TempDir dir;
  const Outcome imported = import_log(dir, std::string(eight_nodes), dir.write("log", written.out));
  CHECK(imported.err == "");
  CHECK(imported.out.ends_with("; 2 targets are drained\n"));
  REQUIRE(imported.status == 0);
  CHECK(export_complete(dir).out == written.out);
  const Daemon second(dir, {.config = std::string(eight_nodes)});
  RawClient client(second.uri());
  CHECK(client.call("resource.status").json() == status);
}

TEST_CASE("an export that cannot be written, or that has nothing to write, fails") {
  Cluster cluster;
  const std::vector<std::string> command = resourced_command(
      {"--config", cluster.daemon.config_file(), "--state", cluster.dir / "state", "--export", "--complete"});
  const Outcome full =
      Process({"/bin/sh", "-c", fmt::format("{} >/dev/full", fmt::join(command, " "))}).finish();
  CHECK(full.status == 1);
  CHECK(full.err == "resourced: standard output: No space left on device\n");
  const Outcome none = export_complete(TempDir());
  CHECK(none.status == 1);
  CHECK(none.err.ends_with("state: there is no store\n"));
}

/// A shift in nanoseconds as shifted_clock.cpp reads it.
std::string clock_shift(std::int64_t nanoseconds) {
  std::string bytes(sizeof nanoseconds, '\0');
  std::memcpy(bytes.data(), &nanoseconds, sizeof nanoseconds);
  return bytes;
}

TEST_CASE("after events of a wrong date, an export and an import bring the right one back") {
  constexpr std::int64_t seventy_years = 70LL * 365 * 86400 * 1'000'000'000;
  const TempDir clock;
  const std::filesystem::path shift = clock.write("shift", clock_shift(seventy_years));
  Cluster cluster(DaemonOptions{
      .environment = {{"LD_PRELOAD", RESOURCED_SHIFTED_CLOCK}, {"SHIFTED_CLOCK", shift.string()}}});
  cluster.drain("1", "disk");
  REQUIRE(cluster.daemon.terminate() == 0);
  (void)clock.write("shift", clock_shift(0));
  const Outcome check = Process(resourced_command({"--check", "--config", cluster.daemon.config_file(),
                                                   "--state", cluster.dir / "state"}))
                            .finish();
  CHECK(check.out.find("ahead of the clock, so events get the time of the last one") != std::string::npos);
  cluster.daemon.start();
  CHECK(RawClient(cluster.daemon.uri()).call("resource.drain", {{"targets", "3"}}).errnum == 0);
  CHECK(cluster.daemon.log().find("ahead of the clock") != std::string::npos);
  const std::string ahead = Ctl(cluster.daemon.uri()).output({"eventlog", "--export"});
  TempDir dir;
  const Outcome imported = import_log(dir, std::string(eight_nodes), dir.write("log", ahead));
  CHECK(imported.status == 0);
  const auto all = std::count(ahead.begin(), ahead.end(), '\n');
  CHECK(imported.err.ends_with(
      fmt::format("log: {} events are ahead of the clock: they have the time of this import\n", all)));
  const Daemon second(dir, {});
  RawClient after(second.uri());
  CHECK(after.call("resource.drain", {{"targets", "2"}}).errnum == 0);
  const double year_2090 = 3786912000;
  for (const json& event : history(after)) CHECK(event["timestamp"] < year_2090);
  const std::string metrics = after.call("resource.metrics").json()["text"];
  CHECK(metrics.find("\nresourced_log_ahead_seconds 0\n") != std::string::npos);
  CHECK(second.log().find("ahead of the clock") == std::string::npos);
}

TEST_CASE("a log of Flux that names ranks alone is imported with a warning, and its definitions have R") {
  TempDir dir;
  const std::filesystem::path log = dir.write(
      "log", R"({"timestamp":1,"name":"resource-define","context":{"method":"configuration"}})"
             "\n"
             R"({"timestamp":2,"name":"drain","context":{"idset":"3,5","reason":"dimm","overwrite":0}})"
             "\n");
  const Outcome imported = import_log(dir, std::string(eight_nodes), log);
  CHECK(imported.status == 0);
  CHECK(imported.err ==
        "resourced: warning: " + log.string() +
            ": does not name the hosts of ranks 3,5: taken as test[3,5], which have these ranks in "
            "the configuration\n");
  CHECK(imported.out == "imported 2 events; 2 targets are drained\n");
  const Daemon daemon(dir, {.config = std::string(eight_nodes)});
  RawClient client(daemon.uri());
  CHECK(client.call("resource.status").json()["drain"]["3,5"]["reason"] == "dimm");
  const auto stream = client.send("resource.journal", json::object(), wire::flag_streaming);
  const json first = client.receive(stream).json();
  CHECK(first["events"][0]["name"] == "resource-define");
  CHECK(first["R"]["execution"]["nodelist"] == json{"test[0-7]"});
}

TEST_CASE("a log with a line that eventlog could not show is refused with the number of the line") {
  TempDir dir;
  const std::filesystem::path log = dir.write("log", R"({"timestamp":1,"name":"unknown","context":{"x":1}})"
                                                     "\n"
                                                     R"({"timestamp":2,"name":"unknown","context":[1]})"
                                                     "\n");
  const Outcome imported = import_log(dir, std::string(eight_nodes), log);
  CHECK(imported.status == 1);
  CHECK(imported.err == "resourced: " + log.string() + ":2: context: must be an object\n");
}

TEST_CASE("a host that left, was loaded again and drained is drained after export and import") {
  const std::string config(eight_nodes);
  Cluster cluster;
  const json whole = cluster.status()["R"];
  cluster.ctl.done({"property", "add", "before", "2"});
  cluster.ctl.done({"expiration", "set", "4102444800"});
  cluster.ctl.done({"shrink", "3"});
  cluster.ctl.done({"reload", cluster.dir.write("R.json", whole.dump())});
  cluster.drain("3", "disk");
  cluster.ctl.done({"property", "add", "after", "3-4"});
  const json status = cluster.status();
  REQUIRE(status["R"]["execution"]["properties"] == json{{"after", "3-4"}});
  REQUIRE(drained_ranks(status) == std::set<unsigned>{3});

  TempDir dir;
  const Outcome imported =
      import_log(dir, config, dir.write("log", cluster.ctl.output({"eventlog", "--export"})));
  CHECK(imported.err == "");
  CHECK(imported.out.ends_with("1 targets are drained\n"));
  REQUIRE(imported.status == 0);
  const Daemon second(dir, {.config = config});
  const json status_there = RawClient(second.uri()).call("resource.status").json();
  CHECK(status_there["R"] == status["R"]);
  CHECK(status_there["drain"] == status["drain"]);
}

// No double holds these numbers, and JSON parsers order keys as they like.
TEST_CASE("the scheduling of an allocation goes through export and import as the text it came in") {
  const std::string scheduling =
      R"("scheduling":{"b":1.0e5,"a":[12345678901234567890123,1E5,-0,0.10],"c":"x y"})";
  Cluster cluster;
  RawClient scheduler(cluster.daemon.uri());
  REQUIRE(scheduler.receive(scheduler.acquire()).errnum == 0);
  const std::string request =
      R"({"id":"a","R":{"version":1,"execution":{"R_lite":[{"rank":"2","children":{"core":"0"}}],)"
      R"("nodelist":["test2"]}, )" +
      scheduling + "}}";
  REQUIRE(scheduler.receive(scheduler.send_text("resource.alloc", request)).errnum == 0);
  const std::string exported = cluster.ctl.output({"eventlog", "--export"});
  CHECK(exported.find(scheduling) != std::string::npos);
  CHECK(cluster.ctl.output({"eventlog", "--allocations"}).find(scheduling) != std::string::npos);

  TempDir dir;
  REQUIRE(import_log(dir, std::string(eight_nodes), dir.write("log", exported)).status == 0);
  const Daemon second(dir, {});
  CHECK(Ctl(second.uri()).output({"eventlog", "--export"}).find(scheduling) != std::string::npos);
}

TEST_CASE("properties may have the names of keys of an event") {
  Cluster cluster;
  for (const char* name : {"R", "added"}) cluster.ctl.done({"property", "add", name, "2-5"});
  for (const char* change : {R"(property-add={"R":"2-5"})", R"(property-add={"added":"2-5"})"})
    CHECK(cluster.ctl.output({"eventlog", "--wait", "property-update", "-m", change}).find(change) !=
          std::string::npos);
  TempDir dir;
  const std::string log = cluster.ctl.output({"eventlog", "--export"});
  REQUIRE(import_log(dir, std::string(eight_nodes), dir.write("log", log)).status == 0);
  const Daemon second(dir, {});
  const json status = RawClient(second.uri()).call("resource.status").json();
  CHECK(status["R"]["execution"]["properties"] == json{{"R", "2-5"}, {"added", "2-5"}});
}

TEST_CASE("a log that is not whole is refused with its line") {
  TempDir dir;
  const std::string config(eight_nodes);
  const Outcome outcome =
      import_log(dir, config, dir.write("log", "{\"timestamp\":5,\"name\":\"truncate\"}\n"));
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("log:1: truncate: the log is incomplete") != std::string::npos);
}

// Requests journals of targets that the event may concern; they must not fail.
void check_journals(Daemon& daemon) {
  RawClient user(daemon.uri());
  for (const char* targets : {"test1", "test[0-7]", "7"}) {
    CAPTURE(targets);
    const std::uint32_t stream = user.send("resource.journal", {{"targets", targets}}, wire::flag_streaming);
    RawResponse response = user.receive(stream);
    while (response.errnum == 0 && !response.text().starts_with(R"({"events":[],)"))
      response = user.receive(stream);
    CHECK(response.errnum == 0);
  }
  CHECK(user.call("resource.drain", {{"targets", "1"}}).errnum == 0);
  CHECK(user.call("resource.undrain", {{"targets", "1"}}).errnum == 0);
  CHECK(daemon.terminate() == 0);
}

TEST_CASE("a resource-update with a bad nodelist is not imported, and ends no daemon") {
  const std::string config(eight_nodes);
  const std::string start =
      R"({"timestamp":1,"name":"restart","context":{"ranks":"0-7","online":"0-7","nodelist":"test[0-7]"}})"
      "\n";
  for (const char* context :
       {R"({"expiration":4102444800,"nodelist":"test[1"})", R"({"expiration":4102444800,"nodelist":7})",
        R"({"expiration":4102444800,"nodelist":"test[0-99999999999]"})",
        R"({"property-add":{"p":"1"},"nodelist":"test[1"})", R"({"shrink":"1","nodelist":"test1,,["})"}) {
    CAPTURE(context);
    TempDir dir;
    const std::string event =
        std::string(R"({"timestamp":2,"name":"resource-update","context":)") + context + "}\n";
    const Outcome refused = import_log(dir, config, dir.write("log", start + event));
    CHECK(refused.status == 1);
    CHECK(refused.err.find("log:2: context.nodelist: ") != std::string::npos);
    CHECK(import_log(dir, config, dir.write("log", start)).status == 0);
    Daemon daemon(dir);
    check_journals(daemon);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

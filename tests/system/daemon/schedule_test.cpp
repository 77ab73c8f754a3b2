// Drains that begin later and end by themselves, with the real programs.
#include <functional>
#include <sstream>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/acquisition.hpp"
#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("schedule");

TEST_CASE("a drain begins and ends by itself, also if the daemon is killed before") {
  Cluster cluster;
  const std::string will =
      cluster.ctl.output({"drain", "--from", "+1s", "--until", "+1.2s", "test[2-3]", "power"});
  CHECK(will.starts_with("will drain 2 nodes: test[2-3] (power) from 20"));
  CHECK(will.find(" until 20") != std::string::npos);
  cluster.daemon.kill();
  cluster.daemon.start();
  const std::string began = cluster.ctl.output({"eventlog", "-w", "drain"});
  CHECK(began.find("drain-schedule") != std::string::npos);
  CHECK(began.find("nodelist=\"test[2-3]\" reason=\"power\"") != std::string::npos);
  const std::string ended = cluster.ctl.output({"eventlog", "-w", "undrain"});
  CHECK(ended.find("scheduled=true") != std::string::npos);
  CHECK(cluster.status()["drain"] == json::object());
  CHECK_FALSE(cluster.status().contains("scheduled"));
}

TEST_CASE("drains that begin later, or end, are listed, and cancelled by undrain") {
  Cluster cluster;
  cluster.ctl.done({"drain", "--from", "2090-01-01T12:00Z", "test[1-2]", "power"});
  cluster.ctl.done({"drain", "--until", "2091-01-01T12:00Z", "test3", "fan"});
  cluster.ctl.done({"drain", "test4", "disk"});
  const auto listed = [&] {
    json short_form = json::array();
    std::istringstream lines(cluster.ctl.output({"drain", "--scheduled", "--json"}));
    for (std::string text; std::getline(lines, text);) {
      const json line = json::parse(text);
      short_form.push_back({line["state"], line["nodelist"], line["reason"], line["until"]});
    }
    return short_form;
  };
  CHECK(listed() == json::parse(R"([["drained", "test3", "fan", 3818491200.0],
                                    ["scheduled", "test[1-2]", "power", null]])"));
  CHECK(cluster.status()["scheduled"]["1-2"]["from"] == 3786955200.0);
  CHECK(cluster.ctl.output({"undrain", "test[2-3]"}) ==
        "undrained 1 node: test3; cancelled the scheduled drain of 1 node: test2\n");
  CHECK(listed() == json::parse(R"([["scheduled", "test1", "power", null]])"));
  CHECK(cluster.ctl.output({"undrain", "test1"}) == "cancelled the scheduled drain of 1 node: test1\n");
  cluster.ctl.done({"drain", "test1", "fan"});
  cluster.ctl.done({"drain", "--from", "2090-01-01", "test1", "power"});
  CHECK(json::parse(cluster.ctl.output({"undrain", "--json", "test1"})) == json{{"change", "undrain"},
                                                                                {"nnodes", 1},
                                                                                {"ranks", "1"},
                                                                                {"nodelist", "test1"},
                                                                                {"cancelled", "test1"}});
  const Outcome late = cluster.ctl.run({"drain", "--from", "2090-01-01", "--until", "2089-01-01", "test5"});
  CHECK(late.status == 1);
  CHECK(late.err == "resourcectl: the drain would end before it begins\n");
  CHECK(cluster.ctl.run({"drain", "--from", "soon", "test5"}).status == 2);
}

TEST_CASE("a ticket stands wherever the drain does, over restarts, in the past, and after an import") {
  Cluster cluster;
  CHECK(cluster.ctl.output({"drain", "--ticket", "HW-1", "test[1-2]", "fan"}) ==
        "drained 2 nodes: test[1-2] (fan), ticket HW-1\n");
  CHECK(cluster.ctl.output({"drain", "--from", "2090-01-01", "--ticket", "HW-2", "test3"})
            .ends_with(", ticket HW-2\n"));
  CHECK(json::parse(cluster.ctl.output({"drain", "--json", "--ticket", "HW-3", "test4"}))["ticket"] ==
        "HW-3");
  const auto check = [](const std::string& uri) {
    const Ctl ctl(uri);
    RawClient client(uri);
    json status = client.call("resource.status").json();
    CHECK(status["drain"]["1-2"]["ticket"] == "HW-1");
    CHECK(status["drain"]["4"]["ticket"] == "HW-3");
    CHECK(status["scheduled"]["3"]["ticket"] == "HW-2");
    CHECK(ctl.output({"drain", "-n", "-o", "{ticket} {nodelist}"}) == "HW-1 test[1-2]\nHW-3 test4\n");
    CHECK(ctl.output({"drain", "--scheduled", "-n", "-o", "{ticket} {nodelist}"}) == "HW-2 test3\n");
    CHECK(ctl.output({"show", "test1"}).find("\n  ticket      HW-1\n") != std::string::npos);
    CHECK(ctl.output({"show", "test3"}).find(", ticket HW-2\n") != std::string::npos);
    CHECK(json::parse(ctl.output({"show", "--json", "test2"}))["drain"]["ticket"] == "HW-1");
    CHECK(ctl.output({"eventlog", "-n", "9"}).find("reason=\"fan\" ticket=\"HW-1\"") != std::string::npos);
  };
  check(cluster.daemon.uri());
  const json past = cluster.status();
  cluster.daemon.kill();
  cluster.daemon.start();
  check(cluster.daemon.uri());
  {
    RawClient client(cluster.daemon.uri());
    const json log = history(client, {{"targets", "test4"}});
    const json at = client.call("resource.status-at", {{"at", log.back()["timestamp"]}}).json();
    CHECK(at["drain"] == past["drain"]);
    CHECK(at["scheduled"] == past["scheduled"]);
  }
  const std::string exported = cluster.ctl.output({"eventlog", "--export"});
  TempDir dir;
  REQUIRE(import_log(dir, std::string(eight_nodes), dir.write("log", exported)).status == 0);
  const Daemon second(dir, {.config = std::string(eight_nodes)});
  check(second.uri());
}

TEST_CASE("a drain that is replaced has the ticket of the new one alone, and a reason takes none away") {
  Cluster cluster;
  const auto ticket_of = [&] { return cluster.status()["drain"].begin()->value("ticket", "none"); };
  cluster.ctl.done({"drain", "--ticket", "HW-1", "test1"});
  cluster.ctl.done({"drain", "test1", "fan"});
  CHECK(ticket_of() == "HW-1");
  CHECK(cluster.ctl.run({"drain", "--ticket", "HW-2", "test1", "fan"}).status == 1);
  cluster.ctl.done({"drain", "-u", "--ticket", "HW-2", "test1", "fan"});
  CHECK(ticket_of() == "HW-1");
  cluster.ctl.done({"drain", "-f", "--ticket", "HW-2", "test1", "fan"});
  CHECK(ticket_of() == "HW-2");
  cluster.ctl.done({"drain", "-f", "test1", "disk"});
  CHECK(ticket_of() == "none");
}

TEST_CASE("a target that is drained without a reason takes an end and a ticket") {
  Cluster cluster;
  cluster.ctl.done({"drain", "test1"});
  cluster.ctl.done({"drain", "--ticket", "HW-1", "test1"});
  cluster.ctl.done({"drain", "-u", "--until", "4000000000", "test[1-2]"});
  json drains = cluster.status()["drain"];
  CHECK(drains["1"]["ticket"] == "HW-1");
  CHECK(drains["1"]["until"] == 4000000000);
  CHECK(drains["2"]["until"] == 4000000000);
  // Where nothing changes there is no event.
  const std::string events = cluster.ctl.output({"eventlog"});
  cluster.ctl.done({"drain", "--ticket", "HW-1", "test1"});
  CHECK(cluster.ctl.output({"eventlog"}) == events);
  CHECK(cluster.status()["drain"] == drains);
}

TEST_CASE("a ticket is one line, and for a drain that is made") {
  Cluster cluster;
  for (const std::string& ticket : {std::string(257, 'x'), std::string("a\nb"), std::string("a\x7f")}) {
    const Outcome refused = cluster.ctl.run({"drain", "--ticket", ticket, "test1"});
    CHECK(refused.status == 1);
    CHECK(refused.err == "resourcectl: a ticket is one line of 1 to 256 bytes\n");
  }
  CHECK(cluster.operator_client.call("resource.drain", {{"targets", "1"}, {"ticket", ""}}).errnum ==
        wire_errno::inval);
  CHECK(cluster.status()["drain"].empty());
  const Outcome listing = cluster.ctl.run({"drain", "--ticket", "HW-1"});
  CHECK(listing.status == 2);
  CHECK(listing.err.find("TARGETS is required with --from, --until and --ticket") != std::string::npos);
  CHECK(cluster.ctl.run({"drain", "--ticket", "", "test1"}).status == 2);
  cluster.ctl.done({"drain", "--ticket", std::string(256, 'x'), "test1"});
}

TEST_CASE("several scheduled drains of a node are listed, and cancelled one by one") {
  Cluster cluster;
  cluster.ctl.done({"drain", "--from", "2090-01-01T12:00Z", "test[1-2]", "power"});
  const std::string told = cluster.ctl.output({"drain", "--from", "2091-01-01T12:00Z", "test2", "fan"});
  CHECK(told.ends_with("; overlaps another scheduled drain of 1 node: test2\n"));
  json status = cluster.status();
  // `scheduled` has the next drain of each target, `schedules` has all.
  CHECK(status["scheduled"]["1-2"]["reason"] == "power");
  REQUIRE(status.contains("schedules"));
  CHECK(status["schedules"].size() == 2);
  const auto listed = [&](const Ctl& ctl) {
    return ctl.output({"drain", "--scheduled", "-n", "-o", "{nodelist} {reason}"});
  };
  CHECK(listed(cluster.ctl) == "test[1-2] power\ntest2 fan\n");
  // Over a start, in the past, and after an import.
  cluster.daemon.kill();
  cluster.daemon.start();
  CHECK(cluster.status()["schedules"] == status["schedules"]);
  {
    RawClient client(cluster.daemon.uri());
    const json at = history(client, json::object()).back()["timestamp"];
    CHECK(client.call("resource.status-at", {{"at", at}}).json()["schedules"] == status["schedules"]);
  }
  TempDir dir;
  const std::string exported = cluster.ctl.output({"eventlog", "--export"});
  REQUIRE(import_log(dir, std::string(eight_nodes), dir.write("log", exported)).status == 0);
  const Daemon second(dir, {.config = std::string(eight_nodes)});
  CHECK(listed(Ctl(second.uri())) == "test[1-2] power\ntest2 fan\n");

  (void)cluster.operator_client.call("resource.drain-cancel", {{"targets", "1-2"}, {"from", 3786955200.0}});
  CHECK(cluster.status()["scheduled"].size() == 1);
  CHECK(cluster.status()["scheduled"]["2"]["reason"] == "fan");
  cluster.ctl.done({"drain", "--from", "2090-01-01T12:00:00.5Z", "test2", "power"});
  CHECK(cluster.ctl.output({"undrain", "--from", "2090-01-01T12:00Z", "test2"})
            .starts_with("cancelled the scheduled drain of 1 node: test2 from 20"));
  CHECK(listed(cluster.ctl) == "test2 fan\n");
  // The listing shows the nearest second.
  cluster.ctl.done({"drain", "--from", "2090-01-01T12:00:00.7Z", "test2", "power"});
  const std::string shown = cluster.ctl.output({"drain", "--scheduled", "-n", "-o", "{from} {reason}"});
  REQUIRE(shown.find(" power\n") != std::string::npos);
  cluster.ctl.done({"undrain", "--from", shown.substr(0, shown.find(' ')), "test2"});
  CHECK(listed(cluster.ctl) == "test2 fan\n");
  const Outcome none = cluster.ctl.run({"undrain", "--from", "2090-01-01T12:00Z", "test2"});
  CHECK(none.status == 1);
  CHECK(none.err ==
        "resourcectl: rank 2 not scheduled to be drained at that time (test2): use -f to skip it\n");
  CHECK(cluster.ctl.run({"undrain", "--from", "2090-01-01T12:00Z", "test2", "why"}).status == 2);
  cluster.ctl.done({"drain", "--from", "2092-01-01T12:00Z", "test2", "power"});
  CHECK(cluster.ctl.output({"undrain", "test2"}) == "cancelled 2 scheduled drains of 1 node: test2\n");
}

TEST_CASE("a cancel of a window skips targets whose part is cancelled already, with -f and -u") {
  Cluster cluster;
  const std::string begin = "2090-01-01T12:00Z";
  const auto scheduled = [&] {
    return cluster.ctl.output({"drain", "--scheduled", "-n", "-o", "{nodelist} {reason}"});
  };
  for (const char* option : {"-f", "--force", "-u", "--update"}) {
    CAPTURE(option);
    cluster.ctl.done({"drain", "--from", begin, "test[1-3]", "power"});
    cluster.ctl.done({"drain", "--from", "2091-01-01", "test[2,4]", "fan"});
    cluster.ctl.done({"undrain", "--from", begin, "test2"});
    const Outcome refused = cluster.ctl.run({"undrain", "--from", begin, "test[1-3]"});
    CHECK(refused.status == 1);
    CHECK(scheduled() == "test[1,3] power\ntest[2,4] fan\n");
    const std::string told = cluster.ctl.output({"undrain", option, "--from", begin, "all"});
    CHECK(told.starts_with("cancelled the scheduled drain of 2 nodes: test[1,3] from 20"));
    CHECK(told.ends_with("; test[0,2,4-7] not scheduled to be drained at that time\n"));
    // The drain of another time stays.
    CHECK(scheduled() == "test[2,4] fan\n");
    CHECK(cluster.ctl.output({"undrain", option, "--from", begin, "2"}) ==
          "nothing to do: test2 not scheduled to be drained at that time\n");
    // Unknown targets are refused all the same.
    CHECK(cluster.ctl.run({"undrain", option, "--from", begin, "test9"}).err ==
          "resourcectl: unknown host: test9\n");
    // The listing shows whole seconds, and a begin may be given as it is shown.
    cluster.ctl.done({"drain", "--from", "2090-01-01T12:00:00.7Z", "test2", "power"});
    cluster.ctl.done({"undrain", option, "--quiet", "--from", "2090-01-01T12:00:01Z", "test[2-3]"});
    CHECK(scheduled() == "test[2,4] fan\n");
    cluster.ctl.done({"undrain", "test[2,4]"});
  }
  cluster.ctl.done({"drain", "--from", begin, "test1"});
  json described = json::parse(cluster.ctl.output({"undrain", "--json", "-f", "--from", begin, "0-1"}));
  CHECK(described == json{{"change", "drain-cancel"},
                          {"nnodes", 1},
                          {"ranks", "1"},
                          {"nodelist", "test1"},
                          {"from", 3786955200.0},
                          {"skipped", "test0"}});
}

TEST_CASE("a drain from the time of another scheduled one says that it replaces it") {
  Cluster cluster;
  const auto schedule = [&](const char* targets, const char* reason) {
    return cluster.ctl.output({"drain", "--from", "2090-01-01T12:00Z", targets, reason});
  };
  CHECK(schedule("test[1-2]", "power").find("place") == std::string::npos);
  CHECK(schedule("test[2-3]", "fan")
            .ends_with("; in place of the scheduled drain of 1 node: test2 from that time\n"));
  CHECK(cluster.ctl.output({"drain", "--scheduled", "-n", "-o", "{nodelist} {reason}"}) ==
        "test1 power\ntest[2-3] fan\n");
  const std::string described =
      cluster.ctl.output({"drain", "--json", "--from", "2090-01-01T12:00Z", "test[0-3]", "move"});
  CHECK(json::parse(described)["replaced"] == "test[1-3]");
  CHECK_FALSE(json::parse(described).contains("overlaps"));
}

TEST_CASE(
    "a drain that does not overlap the scheduled ones is not said to, and one more than most is refused") {
  Cluster cluster;
  const auto schedule = [&](int year) {
    return cluster.ctl.run({"drain", "--from", fmt::format("{}-01-01", year), "--until",
                            fmt::format("{}-01-02", year), "test1"});
  };
  for (int year = 2080; year < 2096; ++year) CHECK(schedule(year).out.find("overlaps") == std::string::npos);
  const Outcome refused = schedule(2096);
  CHECK(refused.status == 1);
  CHECK(refused.err ==
        "resourcectl: rank 1 scheduled to be drained 16 times already: cancel one first (test1)\n");
}

TEST_CASE("a scheduler with the library learns which drains begin later, and why targets went down") {
  Cluster cluster;
  struct Observer : client::AcquisitionObserver {
    void on_cause(const client::DownCauses& causes) override { drained = causes.drained.encode(); }
    void on_error(const Error& why) override { FAIL(why.what()); }
    std::string drained;
  } observer;
  client::AcquisitionOptions options;
  options.scheduled = options.cause = true;
  client::Connection connection(cluster.daemon.uri());
  const client::Acquisition acquisition(connection, observer, options);
  const auto until = [&](const std::function<bool()>& condition) {
    for (const Deadline deadline; !condition();) {
      if (deadline.passed()) throw Timeout("the scheduler was not told");
      connection.wait(client::Milliseconds(100));
    }
  };
  until([&] { return acquisition.state() == client::Acquisition::State::held; });
  CHECK(acquisition.scheduled().empty());

  cluster.ctl.done(
      {"drain", "--from", "2090-01-01T12:00Z", "--until", "2091-01-01T12:00Z", "test[1-2]", "power"});
  until([&] { return !acquisition.scheduled().empty(); });
  REQUIRE(acquisition.scheduled().size() == 1);
  const client::ScheduledDrain& drain = acquisition.scheduled().front();
  CHECK(drain.ranks.encode() == "1-2");
  CHECK(drain.from == wall_time(3786955200));
  CHECK(drain.until == wall_time(3818491200));
  CHECK(drain.reason == "power");
  CHECK(acquisition.up().encode() == "0-7");

  cluster.drain("3", "fan");
  until([&] { return !observer.drained.empty(); });
  CHECK(observer.drained == "3");
  CHECK(acquisition.up().encode() == "0-2,4-7");
  cluster.ctl.done({"undrain", "test[1-2]"});
  until([&] { return acquisition.scheduled().empty(); });
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

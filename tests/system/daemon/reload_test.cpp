// Changes of the configuration of a running daemon: those that take effect at once with the updates that they
// cause, and those that are refused as a whole.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

/// The tables before the inventory, and the properties of test0 to test3 and of test4 to test7.
std::string configuration(const std::string& tables, const std::string& first = "",
                          const std::string& second = "") {
  const auto entry = [](const char* hosts, const std::string& properties) {
    return fmt::format("[[resource.config]]\nhosts = \"{}\"\ncores = \"0-3\"\nproperties = [{}]\n", hosts,
                       properties);
  };
  return tables + entry("test[0-3]", first) + entry("test[4-7]", second);
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

/// A cluster that reloads a changed configuration, alternately by SIGHUP and by request.
struct Reloaded : Cluster {
  using Cluster::Cluster;

  void reload(const std::string& config) {
    daemon.configure(config);
    by_signal = !by_signal;
    if (by_signal) {
      daemon.hang_up();
    } else {
      ctl.done({"reload"});
    }
  }

  bool by_signal = false;
};

TEST_SUITE_BEGIN("reload");

TEST_CASE("exclude takes effect for the present scheduler and for the next") {
  Reloaded cluster(configuration(""));
  {
    Scheduler scheduler(cluster.daemon.uri());
    cluster.drain("5", "disk");
    CHECK(scheduler.next() == json{{"down", "5"}});

    cluster.reload(configuration("[resource]\nexclude = \"2,5\"\n"));
    CHECK(scheduler.next() == json{{"down", "2"}});
    // Excluding a target undrains it, so that it is not drained when it is included again.
    CHECK(cluster.status()["drain"] == json::object());
    CHECK(cluster.status()["exclude"] == "2,5");
    const RawResponse refused = cluster.operator_client.call("resource.drain", {{"targets", "2"}});
    CHECK(refused.errnum == wire_errno::inval);
    CHECK(refused.text() == "rank 2 excluded");

    cluster.reload(configuration("[resource]\nexclude = \"test[6-7]\"\n"));
    CHECK(scheduler.next() == json{{"up", "2,5"}, {"down", "6-7"}});
    CHECK(scheduler.client.settle().empty());
  }
  Scheduler next(cluster.daemon.uri());
  CHECK(next.first["up"] == "0-5");
  CHECK(next.first["resources"]["execution"]["nodelist"] == json::parse(R"(["test[0-5]"])"));
}

TEST_CASE("properties take effect as property-add and property-remove") {
  Reloaded cluster(configuration("", R"("old", "both")", R"("both")"));
  Scheduler scheduler(cluster.daemon.uri());
  CHECK(scheduler.first["resources"]["execution"]["properties"] ==
        json::parse(R"({"old": "0-3", "both": "0-7"})"));

  cluster.reload(configuration("", R"("both")", R"("new")"));
  CHECK(scheduler.next() == json::parse(R"({"property-add": {"new": "4-7"},
                                            "property-remove": {"old": "0-3", "both": "4-7"}})"));

  // Properties added by an operator stay beside those of the configuration.
  cluster.ctl.done({"property", "add", "mark", "1"});
  CHECK(scheduler.next() == json::parse(R"({"property-add": {"mark": "1"}})"));
  cluster.reload(configuration("", R"("both")", ""));
  CHECK(scheduler.next() == json::parse(R"({"property-remove": {"new": "4-7"}})"));
  CHECK(scheduler.client.settle().empty());
  const json expected = json::parse(R"({"both": "0-3", "mark": "1"})");
  CHECK(cluster.status()["R"]["execution"]["properties"] == expected);

  cluster.daemon.kill();
  cluster.daemon.start();
  CHECK(Scheduler(cluster.daemon.uri()).first["resources"]["execution"]["properties"] == expected);
}

// RFC 33: the hosts of a queue have its membership property.
TEST_CASE("a queue's hosts take effect as property-add and property-remove of +NAME") {
  Reloaded cluster(configuration("[queues.batch]\nhosts = \"test[0-3]\"\n"));
  Scheduler scheduler(cluster.daemon.uri());
  CHECK(scheduler.first["resources"]["execution"]["properties"] == json{{"+batch", "0-3"}});

  cluster.reload(configuration("[queues.batch]\nhosts = \"test[2-5]\"\n[queues.any]\nhosts = \"all\"\n"));
  CHECK(scheduler.next() == json::parse(R"({"property-add": {"+batch": "4-5", "+any": "0-7"},
                                            "property-remove": {"+batch": "0-1"}})"));
  cluster.daemon.kill();
  cluster.daemon.start();
  CHECK(Scheduler(cluster.daemon.uri()).first["resources"]["execution"]["properties"] ==
        json::parse(R"({"+batch": "2-5", "+any": "0-7"})"));

  // A reload with an unknown host is refused as a whole.
  cluster.daemon.configure(configuration("[queues.batch]\nhosts = \"test8\"\n"));
  CHECK(cluster.operator_client.call("resource.reload")
            .text()
            .ends_with("queues.batch.hosts: unknown host: test8"));
  CHECK(cluster.status()["R"]["execution"]["properties"] ==
        json::parse(R"({"+batch": "2-5", "+any": "0-7"})"));

  cluster.reload(configuration(""));
  CHECK_FALSE(cluster.status()["R"]["execution"].contains("properties"));
}

TEST_CASE("journal-max takes effect: the next reader gets that much history") {
  Reloaded cluster(configuration(""));
  for (int i = 0; i < 10; ++i) {
    cluster.drain("4");
    cluster.undrain("4");
  }
  CHECK(history(cluster.operator_client).size() == 22);
  cluster.daemon.configure(configuration("[resource]\njournal-max = 5\n"));
  cluster.ctl.done({"reload"});
  const auto recent = history(cluster.operator_client);
  REQUIRE_FALSE(recent.empty());
  CHECK(recent.front()["name"] == "truncate");
  CHECK(recent.size() == 6);
}

TEST_CASE("the log level takes effect") {
  constexpr const char* reloaded = "configuration reloaded";
  Reloaded cluster(configuration("[log]\nlevel = \"warning\"\n"));
  CHECK(cluster.daemon.log().find("serving") == std::string::npos);
  cluster.daemon.configure(configuration("[log]\nlevel = \"info\"\n"));
  cluster.ctl.done({"reload"});
  until_logged(cluster.daemon, reloaded);
  CHECK(count(cluster.daemon.log(), reloaded) == 1);
  cluster.daemon.configure(configuration("[log]\nlevel = \"error\"\n"));
  cluster.ctl.done({"reload"});
  CHECK(count(cluster.daemon.log(), reloaded) == 1);
  CHECK(cluster.operator_client.call("config.get").json()["log"]["level"] == "error");
}

TEST_CASE("everything else is refused as a whole, with file, line and key") {
  const std::string good = configuration("[resource]\nexclude = \"7\"\n", R"("fast")");
  // Each would also exclude rank 1 and remove a property, which must not happen.
  const std::string also = "[resource]\nexclude = \"1\"\n";
  struct Case {
    std::string config;
    int line;
    /// Null if the text is not TOML.
    const char* key;
  };
  const std::vector<Case> cases{
      {also + "[[resource.config]]\nhosts = \"test[0-8]\"\ncores = \"0-3\"\n", 3, "resource.config"},
      {also + "[[resource.config]]\nhosts = \"test[0-7]\"\ncores = \"0-7\"\n", 3, "resource.config"},
      {also + "[[resource.config]]\nhosts = \"test[0-7]\"\ncores = \"0-3\"\ngpus = \"0\"\n", 3,
       "resource.config"},
      {configuration(also + "norestrict = true\n"), 3, "resource.norestrict"},
      {configuration(also + "[bus]\nlisten = [\"tcp://127.0.0.1:*\"]\n"), 4, "bus.listen"},
      {configuration(also + "[bus]\nsend-hwm = 5\n"), 4, "bus.send-hwm"},
      {configuration(also + "[bus]\nheartbeat-interval = \"1s\"\n"), 4, "bus.heartbeat-interval"},
      {configuration(also + "[store]\ndirectory = \"elsewhere\"\n"), 4, "store.directory"},
      {configuration(also + "[[acquire.partition]]\nname = \"a\"\ntargets = \"0\"\n"), 3,
       "acquire.partition"},
      // Files that are invalid by themselves.
      {configuration(also + "[store]\nhistory = \"long\"\n"), 4, "store.history"},
      {configuration("[resource]\nexclude = \"nosuch1\"\n"), 2, "resource.exclude"},
      {configuration(also + "colour = \"red\"\n"), 3, "resource.colour"},
      {configuration(also + "exclude = \n"), 3, nullptr},
  };
  Reloaded cluster(good);
  Scheduler scheduler(cluster.daemon.uri());
  const json config = cluster.operator_client.call("config.get").json();
  const json status = cluster.status();
  const std::string file = cluster.daemon.config_file();
  for (const Case& bad : cases) {
    CAPTURE(bad.config);
    const std::string place =
        fmt::format("{}:{}:", file, bad.line) + (bad.key == nullptr ? "" : fmt::format(" {}: ", bad.key));
    cluster.daemon.configure(bad.config);
    const Outcome refused = cluster.ctl.run({"reload"});
    CAPTURE(refused.err);
    CHECK(refused.status == 1);
    CHECK(refused.err.starts_with("resourcectl: "));
    CHECK(count(refused.err, "\n") == 1);
    CHECK(refused.err.find(place) != std::string::npos);
    CHECK(cluster.operator_client.call("config.get").json() == config);
    CHECK(cluster.status() == status);

    // A signal has no response, so the log has the reason.
    cluster.daemon.hang_up();
    CHECK(cluster.status() == status);
    const std::string log = cluster.daemon.log();
    CHECK(log.substr(log.rfind("reload refused")).find(place) != std::string::npos);
    CHECK(cluster.operator_client.call("config.get").json() == config);
  }
  cluster.daemon.configure("");
  CHECK(cluster.ctl.run({"reload"}).status == 1);
  CHECK(cluster.status() == status);
  CHECK(scheduler.client.settle().empty());

  // The valid file still works.
  cluster.daemon.configure(configuration("[resource]\nexclude = \"6-7\"\n", R"("fast")"));
  cluster.ctl.done({"reload"});
  CHECK(scheduler.next() == json{{"down", "6"}});
}

TEST_CASE("systemd hears that a reload is over once its changes can be read") {
  Cluster cluster;
  for (int i = 0; i < 30; ++i) {
    const std::string excluded = i % 2 == 0 ? "1" : "";
    cluster.daemon.configure(fmt::format("[resource]\nexclude = \"{}\"\n{}", excluded, eight_nodes));
    cluster.daemon.hang_up();
    CHECK(RawClient(cluster.daemon.uri()).call("resource.status").json().at("exclude") == excluded);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

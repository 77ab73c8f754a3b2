// Hosts that the inventory lacks for a time: their states are kept, and the daemon reports them.
#include <set>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

std::string with_hosts(const std::string& hosts) {
  return fmt::format("[[resource.config]]\nhosts = \"{}\"\ncores = \"0-3\"\n", hosts);
}

/// Lets a scheduler allocate these cores as j1, and leave.
void allocate(Cluster& cluster, const std::string& ranks, const std::string& cores,
              const std::string& hosts) {
  RawClient scheduler(cluster.daemon.uri());
  const auto stream = scheduler.send("resource.acquire", {{"allocations", true}}, wire::flag_streaming);
  REQUIRE(scheduler.receive(stream).errnum == 0);
  const json group{{"rank", ranks}, {"children", {{"core", cores}}}};
  const json r{{"version", 1},
               {"execution", {{"R_lite", json::array({group})}, {"nodelist", json::array({hosts})}}}};
  REQUIRE(scheduler.call("resource.alloc", {{"id", "j1"}, {"R", r}}).errnum == 0);
}

TEST_SUITE_BEGIN("absent");

TEST_CASE("a typo in hosts loses no drain, schedule or property, and the start and --check say what waits") {
  constexpr std::string_view waiting =
      "the inventory lacks test[4-7]: 3 drains, 1 scheduled drain, 1 change of properties waiting for them "
      "to "
      "return";
  Cluster cluster;
  cluster.ctl.done({"drain", "test[4-6]", "broken"});
  cluster.ctl.done({"drain", "--from", "2090-01-01T12:00Z", "test7", "power"});
  cluster.ctl.done({"property", "add", "fast", "test7"});
  const json before = cluster.status();
  REQUIRE(cluster.daemon.terminate() == 0);
  cluster.daemon.configure(with_hosts("test[0-3],tset[4-7]"));
  const Outcome check = Process(resourced_command({"--check", "--config", cluster.daemon.config_file(),
                                                   "--state", cluster.dir / "state"}))
                            .finish(Deadline());
  CHECK(check.status == 0);
  CHECK(check.out.find(waiting) != std::string::npos);
  cluster.daemon.start();
  until_logged(cluster.daemon, std::string(waiting));
  CHECK(cluster.status()["drain"] == json::object());
  cluster.daemon.kill();

  cluster.daemon.configure(eight_nodes);
  cluster.daemon.start();
  CHECK(cluster.status()["drain"] == before["drain"]);
  CHECK(cluster.status()["scheduled"] == before["scheduled"]);
  CHECK(cluster.status()["R"] == before["R"]);
}

TEST_CASE("a host that a loaded R lacks is drained again with the next one that has it") {
  Cluster cluster;
  const std::string all = cluster.ctl.output({"R", "show"});
  cluster.ctl.done({"drain", "--until", "2091-01-01T12:00Z", "test[4-6]", "broken"});
  const json before = cluster.status();
  const auto load = [&](const std::string& resources) {
    cluster.ctl.done({"reload", cluster.dir.write("R.json", resources)});
  };
  load(
      R"({"version":1,"execution":{"R_lite":[{"rank":"0-4","children":{"core":"0-3"}}],"nodelist":["test[0-4]"]}})");
  until_logged(cluster.daemon, "the inventory lacks test[5-6]: 2 drains waiting for them to return");
  CHECK(cluster.ctl.output({"drain", "-n", "-o", "{nodelist}"}) == "test4\n");
  load(all);
  CHECK(cluster.status()["drain"] == before["drain"]);
}

TEST_CASE("an allocation on a host that the inventory lacks is told at the start and by --check") {
  constexpr std::string_view waiting =
      "the inventory lacks test[6-7]: 1 allocation waiting for them to return";
  Cluster cluster;
  const std::string all = cluster.ctl.output({"R", "show"});
  allocate(cluster, "5-7", "0", "test[5-7]");
  REQUIRE(cluster.daemon.terminate() == 0);
  cluster.daemon.configure(with_hosts("test[0-5]"));
  const Outcome check = Process(resourced_command({"--check", "--config", cluster.daemon.config_file(),
                                                   "--state", cluster.dir / "state"}))
                            .finish(Deadline());
  CHECK(check.out.find(waiting) != std::string::npos);
  cluster.daemon.start();
  until_logged(cluster.daemon, std::string(waiting));
  cluster.ctl.done({"reload", "-f", cluster.dir.write("R.json", all)});
  CHECK(cluster.ctl.output({"allocations", "-n", "-o", "{nodelist}"}) == "test[5-7]\n");
}

TEST_CASE("cores that the inventory lacks and an allocation holds are told, and nothing counts them") {
  constexpr std::string_view waiting =
      "the inventory lacks core[2-3] of test5, core[2-3] of test6: 1 allocation waiting for them to return";
  const auto with_cores = [](const char* cores) {
    return fmt::format("[[resource.config]]\nhosts = \"test[0-7]\"\ncores = \"{}\"\n", cores);
  };
  Cluster cluster(DaemonOptions{.config = with_cores("0-3")});
  allocate(cluster, "5-6", "0-3", "test[5-6]");
  REQUIRE(cluster.daemon.terminate() == 0);
  cluster.daemon.configure(with_cores("0-1"));
  const Outcome check = Process(resourced_command({"--check", "--config", cluster.daemon.config_file(),
                                                   "--state", cluster.dir / "state"}))
                            .finish(Deadline());
  CHECK(check.out.find(waiting) != std::string::npos);
  cluster.daemon.start();
  until_logged(cluster.daemon, std::string(waiting));
  CHECK(cluster.ctl.output({"list", "-n", "-s", "allocated", "-o", "{ncores} {nodelist}"}) ==
        "4 test[5-6]\n");
  CHECK(cluster.ctl.output({"allocations", "-n", "-o", "{ncores} {nodelist}"}) == "4 test[5-6]\n");
  RawClient client(cluster.daemon.uri());
  const std::string metrics = client.call("resource.metrics").json()["text"];
  CHECK(metrics.find("\nresourced_cores{state=\"allocated\",partition=\"\"} 4\n") != std::string::npos);
  CHECK(client.call("resource.allocations").json()["allocations"][0]["absent"] == "test[5-6]");
  REQUIRE(cluster.daemon.terminate() == 0);
  cluster.daemon.configure(with_cores("0-3"));
  cluster.daemon.start();
  CHECK(cluster.ctl.output({"allocations", "-n", "-o", "{ncores} {nodelist}"}) == "8 test[5-6]\n");
}

TEST_CASE("what waits for absent hosts is listed, and forgotten by an event") {
  Cluster cluster;
  cluster.ctl.done({"drain", "test[4-6]", "broken"});
  REQUIRE(cluster.daemon.terminate() == 0);
  cluster.daemon.configure(with_hosts("test[0-3]"));
  cluster.daemon.start();
  CHECK(cluster.ctl.run({"list", "--absent", "-n", "-o", "{nodelist}"}).out == "test[4-6]\n");
  CHECK(cluster.ctl.run({"forget", "test[4-5]"}).status == 0);
  CHECK(cluster.ctl.run({"list", "--absent", "-n", "-o", "{nodelist}"}).out == "test6\n");
  CHECK(cluster.ctl.output({"eventlog"}).find("forget") != std::string::npos);
  REQUIRE(cluster.daemon.terminate() == 0);
  cluster.daemon.configure(eight_nodes);
  cluster.daemon.start();
  CHECK(drained_ranks(cluster.status()) == std::set<unsigned>{6});
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

// resourcectl show: the page of a node, for people and for scripts.
#include <cmath>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "fixture.hpp"
#include "node_agent.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

constexpr std::string_view parts = R"([[resource.config]]
hosts = "n[0-3]"
cores = "0-3"
[[resource.config]]
hosts = "n[2-3]"
properties = ["gpu", "fast"]
gpus = "0-1"
[[acquire.partition]]
name = "night"
targets = "n[2-3]"
)";

json page(const Cluster& cluster, const std::string& node) {
  return json::parse(cluster.ctl.output({"show", "--json", node}));
}

bool has_line(const std::string& text, const std::string& begin) {
  return ("\n" + text).find("\n" + begin) != std::string::npos;
}

TEST_SUITE_BEGIN("show");

TEST_CASE("a host that shrink removed has a page with the drains that wait for its return, and its events") {
  Cluster cluster;
  cluster.drain("2", "bad memory");
  cluster.ctl.done({"drain", "test2", "--from", "4000000000", "move"});
  cluster.ctl.done({"shrink", "--yes", "test[2-3]"});
  const json left = page(cluster, "test2");
  CHECK(left["host"] == "test2");
  CHECK(left["rank"].is_null());
  CHECK(left["state"] == "shrunk");
  CHECK(left["up"] == false);
  CHECK(left["returning"] == false);
  CHECK(left["drain"]["reason"] == "bad memory");
  REQUIRE(left["scheduled"].size() == 1);
  CHECK(left["scheduled"][0]["from"] == 4e9);
  CHECK(left["scheduled"][0]["reason"] == "move");
  CHECK(left["events"].back()["name"] == "shrink");
  CHECK(left["since"] == left["events"].back()["timestamp"]);
  CHECK(page(cluster, "host:test3")["drain"].is_null());
  cluster.ctl.done({"unshrink", "test2"});
  CHECK(page(cluster, "test2")["returning"] == true);

  const std::string text = cluster.ctl.output({"show", "test[1-2]"});
  CHECK(text.starts_with("test1 (rank 1)\n  state       avail"));
  CHECK(has_line(text, "test2 (removed from the inventory)\n  state       shrunk since "));
  CHECK(text.find(", may return\n  reason      bad memory\n") != std::string::npos);
  CHECK(has_line(text, "  scheduled   drain from "));
  // Other hosts are unknown, also beside it.
  CHECK(cluster.ctl.run({"show", "test9,test2"}).err == "resourcectl: unknown host: test9\n");
}

TEST_CASE("JSON of several nodes is printed whole or not at all") {
  Cluster cluster;
  CHECK(cluster.ctl.run({"show", "--json", "test0", "test1"}).out.find("\"host\":\"test1\"") !=
        std::string::npos);
  const Outcome failed = cluster.ctl.run({"show", "--json", "test0", "test9"});
  CHECK(failed.status == 1);
  CHECK(failed.err == "resourcectl: unknown host: test9\n");
  CHECK(failed.out.empty());
  // A person has read the page of the first node by then.
  CHECK(cluster.ctl.run({"show", "test0", "test9"}).out.starts_with("test0 (rank 0)\n"));
}

TEST_CASE("the page of a node has its state, drains, hardware, scheduler, allocations and events") {
  Cluster cluster(parts);
  RawClient scheduler(cluster.daemon.uri());
  const auto stream = scheduler.send("resource.acquire", {{"partition", "night"}, {"allocations", true}},
                                     wire::flag_streaming);
  REQUIRE(scheduler.receive(stream).errnum == 0);
  const json r =
      json::parse(R"({"version":1,"execution":{"R_lite":[{"rank":"2-3","children":{"core":"1-2","gpu":"1"}}],
    "nodelist":["n[2-3]"],"starttime":0,"expiration":0}})");
  REQUIRE(scheduler.call("resource.alloc", {{"id", "j17"}, {"R", r}, {"note", "a job"}}).errnum == 0);
  cluster.drain("2", "bad memory");
  cluster.ctl.done({"drain", "n3", "--from", "4000000000", "--until", "4000003600", "move"});

  const json by{{"userid", geteuid()}};
  const json drained = page(cluster, "n2");
  CHECK(drained["host"] == "n2");
  CHECK(drained["rank"] == 2);
  CHECK(drained["state"] == "draining");
  CHECK(drained["up"] == false);
  CHECK(drained["online"] == true);
  CHECK(drained["since"] == drained["events"].back()["timestamp"]);
  CHECK(std::abs(drained["drain"]["timestamp"].get<double>() - drained["since"].get<double>()) <= 1);
  CHECK(drained["drain"]["reason"] == "bad memory");
  CHECK(drained["drain"]["by"] == by);
  CHECK(drained["drain"]["until"].is_null());
  CHECK(drained["cores"] == "0-3");
  CHECK(drained["gpus"] == "0-1");
  CHECK(drained["memory"].is_null());
  CHECK(drained["properties"] == json{"fast", "gpu"});
  CHECK(drained["partition"] == "night");
  CHECK(drained["scheduler"]["by"] == by);
  CHECK(drained["scheduler"]["allocations"] == true);
  CHECK(drained["allocations"] == json::array({{{"id", "j17"},
                                                {"partition", "night"},
                                                {"cores", "1-2"},
                                                {"gpus", "1"},
                                                {"expiration", nullptr},
                                                {"note", "a job"}}}));
  CHECK(drained["events"].back()["name"] == "drain");
  CHECK(drained["events"].back()["context"]["idset"] == "2");

  const json scheduled = page(cluster, "3");
  CHECK(scheduled["state"] == "avail");
  CHECK(scheduled["since"] == scheduled["events"][0]["timestamp"]);
  CHECK(scheduled["drain"].is_null());
  CHECK(scheduled["scheduled"] == json::array({{{"from", 4000000000.0},
                                                {"reason", "move"},
                                                {"by", by},
                                                {"until", 4000003600.0},
                                                {"ticket", nullptr}}}));

  const json free = page(cluster, "n0");
  CHECK(free["partition"].is_null());
  CHECK(free["scheduler"].is_null());
  CHECK(free["allocations"].empty());

  const std::string text = cluster.ctl.output({"show", "n[2-3]"});
  CHECK(text.starts_with("n2 (rank 2)\n"));
  CHECK(has_line(text, "  state       draining since "));
  CHECK(has_line(text, "  reason      bad memory\n"));
  CHECK(has_line(text, "  cores       4 (0-3)\n"));
  CHECK(has_line(text, "  properties  fast,gpu\n"));
  CHECK(has_line(text, "  allocation  j17 of partition night cores 1-2 gpus 1: a job\n"));
  CHECK(has_line(text, "  scheduled   drain from "));
  CHECK(has_line(text, "\nn3 (rank 3)\n"));
  CHECK_FALSE(has_line(text, "  agent"));
}

TEST_CASE("several nodes are shown one after the other") {
  const Cluster cluster(parts);
  const std::string pages = cluster.ctl.output({"show", "n3", "0", "n[1-2]"});
  CHECK(pages.starts_with("n3 (rank 3)\n"));
  for (const char* next : {"\n\nn0 (rank 0)\n", "\n\nn1 (rank 1)\n", "\n\nn2 (rank 2)\n"})
    CHECK(pages.find(next) != std::string::npos);
}

TEST_CASE("the state of a node lasts over restarts of the daemon") {
  Cluster cluster;
  cluster.drain("2", "x");
  cluster.undrain("2");
  const json before = page(cluster, "test2");
  CHECK(before["since"] == before["events"].back()["timestamp"]);
  cluster.daemon.kill();
  cluster.daemon.start();
  CHECK(page(cluster, "test2")["since"] == before["since"]);
}

TEST_CASE("an unknown node is refused as elsewhere") {
  Cluster cluster;
  for (const auto& [node, error] :
       {std::pair{"nosuch", "unknown host: nosuch"}, {"99", "idset is out of range"}}) {
    const Outcome outcome = cluster.ctl.run({"show", node});
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    CHECK(outcome.err == fmt::format("resourcectl: {}\n", error));
    CHECK(cluster.ctl.run({"undrain", node}).err == outcome.err);
  }
  CHECK(cluster.ctl.run({"show"}).status == 2);
}

TEST_CASE("what is wrong with a node is told, also where an operator has drained it for another reason") {
  Watched cluster(
      "[[resource.config]]\nhosts = \"n[0-1]\"\ncores = \"0-7\"\ngpus = \"0-1\"\n[monitor]\nmode = "
      "\"agents\"\n");
  EventFollower events(cluster.daemon.uri());
  cluster.drain("n0", "a new board");
  NodeAgent agent(cluster.daemon.uri(), "n0",
                  {"--xml", RESOURCED_VECTORS "/hwloc/two_gpus_and_opencl_without_place.xml"});
  CHECK(events.expect("online")["context"]["idset"] == "0");
  CHECK(page(cluster, "n0")["drain"]["reason"] == "a new board");
  CHECK(page(cluster, "n0")["fault"] == "missing resources: core[6-7]");
  CHECK(page(cluster, "n1")["fault"].is_null());
  const std::string text = cluster.ctl.output({"show", "n[0-1]"});
  CHECK(has_line(text, "  reason      a new board\n"));
  CHECK(has_line(text, "  fault       missing resources: core[6-7]\n"));
  CHECK(text.find("fault") == text.rfind("fault"));
}

TEST_CASE("the words of a check that fails are told, and since when it fails, drained for it or returned") {
  const TempDir dir;
  Watched cluster(three_nodes());
  const std::string check = dir.write("check", "#!/bin/sh\necho fan is slow\nexit 1\n");
  std::filesystem::permissions(check, std::filesystem::perms::owner_all);
  EventFollower events(cluster.daemon.uri());
  const NodeAgent agent(cluster.daemon.uri(), "n1",
                        {"--synthetic", four_cores, "--health-program", check, "--health-interval", "1h"});
  const double drained = events.expect("drain")["timestamp"];
  for (int returned = 0; returned < 2; ++returned) {
    const json shown = page(cluster, "n1");
    CHECK(shown["fault"] == "health: fan is slow");
    CHECK(std::abs(shown["fault_since"].get<double>() - drained) < 1);
    CHECK(has_line(cluster.ctl.output({"show", "n1"}), "  fault       health: fan is slow, since 20"));
    if (returned == 0) cluster.undrain("n1");
  }
  CHECK(page(cluster, "n0")["fault_since"].is_null());
}

TEST_CASE("the page of a node with an agent tells whether it is there") {
  Watched cluster(three_nodes());
  EventFollower events(cluster.daemon.uri());
  CHECK(page(cluster, "n1")["state"] == "offline");
  CHECK(page(cluster, "n1")["agent"] == false);
  auto agent = cluster.agent("n1");
  const json online = events.expect("online");
  const json there = page(cluster, "n1");
  CHECK(there["agent"] == true);
  CHECK(there["state"] == "avail");
  CHECK(there["since"] == online["timestamp"]);
  CHECK(has_line(cluster.ctl.output({"show", "n1"}), "  agent       connected\n"));
  CHECK(has_line(cluster.ctl.output({"show", "n2"}), "  agent       not connected\n"));
  CHECK(agent->terminate() == 0);
  const json offline = events.expect("offline");
  CHECK(page(cluster, "n1")["since"] == offline["timestamp"]);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

// The hardware that agents report: verified against the inventory, or used as the inventory (discovery). Real
// agents on synthetic hwloc nodes, and a real daemon.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "node_agent.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("agents");

/// Node n0 in the inventory, compared with the node that hwloc describes: six cores and two gpus.
struct VerifyRow {
  std::string config;
  std::string inventory;
  /// The reason of the drain; empty for a node that matches.
  std::string reason;
};
constexpr const char* more_gpus = "cores = \"0-5\"\ngpus = \"0-3\"";
constexpr const char* fewer_gpus = "cores = \"0-5\"\ngpus = \"0\"";
constexpr const char* more_cores = "cores = \"0-7\"\ngpus = \"0-1\"";
constexpr const char* equal = "cores = \"0-5\"\ngpus = \"0-1\"";
const std::vector<VerifyRow> verify_rows{
    {"", equal, ""},
    {"", more_gpus, ""},
    {"", more_cores, "missing resources: core[6-7]"},
    {"[resource.verify]", equal, ""},
    {"[resource.verify]", more_gpus, "missing resources: gpu[2-3]"},
    {"[resource.verify]", fewer_gpus, "extra resources: gpu1"},
    {"[resource.verify]\ngpu = \"allow-extra\"", more_gpus, "missing resources: gpu[2-3]"},
    {"[resource.verify]\ngpu = \"allow-extra\"", fewer_gpus, ""},
    {"[resource.verify]\ngpu = \"allow-missing\"", more_gpus, ""},
    {"[resource.verify]\ngpu = \"allow-missing\"", fewer_gpus, "extra resources: gpu1"},
    {"[resource.verify]\ngpu = \"ignore\"", more_gpus, ""},
    {"[resource.verify]\ncore = \"ignore\"", more_cores, ""},
    {"[resource]\nverify = true", more_cores, "missing resources: core[6-7]"},
    {"[resource]\nverify = false", more_cores, ""},
    {"[resource]\nnoverify = true\n[resource.verify]", more_cores, ""},
};

TEST_CASE("a node that is not what the inventory says is drained with a reason that names what differs") {
  for (const auto& [config, inventory, reason] : verify_rows) {
    CAPTURE(config);
    CAPTURE(inventory);
    Watched cluster(fmt::format("{}\n[[resource.config]]\nhosts = \"n0\"\n{}\n[monitor]\nmode = \"agents\"\n",
                                config, inventory));
    WatchingScheduler scheduler(cluster.daemon.uri());
    NodeAgent agent(cluster.daemon.uri(), "n0",
                    {"--xml", RESOURCED_VECTORS "/hwloc/two_gpus_and_opencl_without_place.xml"});
    if (reason.empty()) {
      scheduler.until_up({0});
      CHECK(cluster.status()["drain"].empty());
      continue;
    }
    EventFollower events(cluster.daemon.uri());
    CHECK(events.expect("drain")["context"]["reason"] == reason);
    CHECK(events.expect("online")["context"]["idset"] == "0");
    CHECK(scheduler.settle().up().empty());
    CHECK(cluster.ctl.output({"drain", "-n", "-o", "{nodelist} {reason}"}) == fmt::format("n0 {}\n", reason));
    const Outcome undrain = cluster.ctl.run({"undrain", "n0"});
    CHECK(undrain.status == 1);
    CHECK(undrain.err ==
          fmt::format("resourcectl: n0 does not match the inventory: {}; repair it, correct the "
                      "inventory or relax [resource.verify]\n",
                      reason));
    CHECK(scheduler.settle().up().empty());
  }
}

// In this test the agent's cpuset lacks four of the eight cores of the node.
TEST_CASE(
    "with norestrict agents report the cores that they may not use, before anything follows from a report") {
  const auto config = [](std::string_view resource) {
    return fmt::format(
        "[resource]\n{}\n[[resource.config]]\nhosts = \"n0\"\ncores = \"0-7\"\n"
        "[monitor]\nmode = \"agents\"\n",
        resource);
  };
  const std::vector<std::string> restricted{"--xml", RESOURCED_VECTORS "/hwloc/restricted_cpuset.xml"};
  {
    Watched cluster(config("norestrict = true"));
    WatchingScheduler scheduler(cluster.daemon.uri());
    NodeAgent agent(cluster.daemon.uri(), "n0", restricted);
    agent.expect_log("the daemon asks for all cores of this node");
    agent.expect_log("online as rank 0");
    scheduler.until_up({0});
    RawClient client(cluster.daemon.uri());
    CHECK(events_named(client, "drain").empty());

    // The restarted daemon wants the restricted hardware, and asks the same agent for it.
    cluster.daemon.kill();
    cluster.daemon.configure(config(""));
    cluster.daemon.start();
    agent.expect_log("the daemon asks for the cores of this node that this process may use");
    EventFollower(cluster.daemon.uri()).expect("drain");
  }
  Watched cluster("[resource]\nsize = 1\nnorestrict = true\n[monitor]\nmode = \"agents\"\n");
  WatchingScheduler scheduler(cluster.daemon.uri());
  NodeAgent agent(cluster.daemon.uri(), "n0", restricted);
  scheduler.until_up({0});
  CHECK(scheduler.resources()["execution"]["R_lite"][0]["children"]["core"] == "0-7");
}

TEST_CASE("an agent whose R is of another host is drained, unless host names are ignored") {
  Watched cluster(three_nodes("[resource.verify]"));
  RawClient agent(cluster.daemon.uri());
  const auto stream = agent.send("resource.agent", hello("n1", "0-3", "", "n2"), wire::flag_streaming);
  CHECK(agent.receive(stream).json()["rank"] == 1);
  CHECK(EventFollower(cluster.daemon.uri()).expect("drain")["context"]["reason"] ==
        "hostname mismatch: rank 1 is n2, expected n1");

  Watched tolerant(three_nodes("[resource.verify]\nhostname = \"ignore\""));
  RawClient same(tolerant.daemon.uri());
  WatchingScheduler scheduler(tolerant.daemon.uri());
  same.send("resource.agent", hello("n1", "0-3", "", "n2"), wire::flag_streaming);
  scheduler.until_up({1});
}

TEST_CASE("the inventory is discovered from as many agents as are asked for, and acquire waits for it") {
  Watched cluster(discovery("size = 3"));
  WatchingScheduler scheduler(cluster.daemon.uri());
  CHECK_FALSE(scheduler.has_heard());
  const auto refuses_all = [&](const std::string& reason) {
    const std::vector<std::pair<std::string, json>> requests{
        {"attr.get", {{"name", "hostlist"}}},
        {"resource.get", json::object()},
        {"resource.status", json::object()},
        {"resource.sched-status", json::object()},
        {"resource.allocations", json::object()},
        {"resource.ready", json::object()},
        {"resource.wait", {{"targets", "all"}}},
        {"resource.monitor-waitup", {{"up", 1}}},
        {"resource.drain", {{"targets", "n2"}}},
        {"resource.property", {{"op", "add"}, {"targets", "n2"}, {"name", "p"}}},
        {"resource.expiration-update", {{"expiration", 0}}},
        {"resource.reload", {{"path", "/dev/null"}, {"xml", false}, {"force", false}}},
    };
    for (const auto& [topic, payload] : requests) {
      CAPTURE(topic);
      const RawResponse unknown = cluster.operator_client.call(topic, payload);
      CHECK(unknown.errnum == wire_errno::again);
      CHECK(unknown.text() == reason);
    }
  };
  refuses_all("the inventory is not known yet: 0 of 3 nodes have reported");
  // Topics that do not need the inventory are served.
  for (const char* topic :
       {"resource.ping", "resource.stats-get", "resource.metrics", "resource.peers", "config.get"}) {
    CAPTURE(topic);
    CHECK(cluster.operator_client.call(topic).errnum == 0);
  }
  const Agents first = cluster.agents({"n10", "n2"});
  for (const auto& agent : first) agent->expect_log("the rank is not known yet");
  refuses_all("the inventory is not known yet: 2 of 3 nodes have reported");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"status"}, {"list"}, {"info"}, {"drain"}, {"show", "n2"}, {"R", "show"}}) {
    CAPTURE(words.front());
    const Outcome told = cluster.ctl.run(words);
    CHECK(told.status == 1);
    CHECK(told.out.empty());
    CHECK(told.err == "resourcectl: the inventory is not known yet: 2 of 3 nodes have reported\n");
  }
  // A second scheduler is told at once that it is the second one.
  RawClient second(cluster.daemon.uri());
  const RawResponse busy =
      second.receive(second.send("resource.acquire", json::object(), wire::flag_streaming));
  CHECK(busy.errnum == wire_errno::busy);
  CHECK(busy.text() ==
        fmt::format("resources are acquired by another scheduler already: uid {}, which waits for "
                    "the inventory",
                    getuid()));
  CHECK_FALSE(scheduler.has_heard());
  NodeAgent gpus(cluster.daemon.uri(), "n1", {"--xml", RESOURCED_VECTORS "/hwloc/four_gpus.xml"});
  scheduler.until_up({0, 1, 2});
  CHECK(scheduler.resources()["execution"]["nodelist"] == json::parse(R"(["n[1-2,10]"])"));
  CHECK(cluster.ctl.output({"list", "-n", "-s", "up", "-o", "{ncores} {ngpus}"}) == "24 4\n");
  first[0]->expect_log("online as rank 2");
  CHECK(cluster.daemon.log().find("info: discovery is complete: 3 nodes have reported, n[1-2,10]\n") !=
        std::string::npos);
  const json define = EventFollower(cluster.daemon.uri()).expect("resource-define");
  CHECK(define["context"]["method"] == "dynamic-discovery");

  // A host that reports after the discovery is unknown.
  RawClient stranger(cluster.daemon.uri());
  const auto stream = stranger.send("resource.agent", hello("n3"), wire::flag_streaming);
  const RawResponse refused = stranger.receive(stream);
  CHECK(refused.errnum == wire_errno::inval);
  CHECK(refused.text() == "host n3 is not in the inventory");
  CHECK(cluster.daemon.log().find("warning: refused an agent of uid 0: host n3 is not in the inventory\n") !=
        std::string::npos);
  NodeAgent persistent(cluster.daemon.uri(), "n4");
  persistent.expect_log("the daemon refuses this agent: host n4 is not in the inventory");
}

TEST_CASE("a gpu that dies while the node runs is seen at the next reading of the hardware") {
  const TempDir dir;
  const std::string topology = dir.file("topology.xml");
  const auto becomes = [&](const char* name) {
    const std::string next = topology + ".next";
    std::filesystem::copy_file(std::string(RESOURCED_VECTORS "/hwloc/") + name, next);
    std::filesystem::rename(next, topology);
  };
  becomes("four_gpus.xml");
  Watched cluster(
      "[resource.verify]\ncore = \"ignore\"\n[[resource.config]]\nhosts = \"n[0-1]\"\ncores = \"0-3\"\ngpus "
      "= \"0-3\"\n"
      "[monitor]\nmode = \"agents\"\ntorpid-after = \"10m\"\noffline-after = \"20m\"\n");
  NodeAgent agent(cluster.daemon.uri(), "n1", {"--xml", topology, "--probe-interval", "0.1s"});
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_up({1});
  becomes("two_gpus_and_opencl_without_place.xml");
  scheduler.until_up({});
  CHECK(cluster.status()["drain"]["1"]["reason"] == "missing resources: gpu[2-3]");
  // The agent has been connected all the time.
  RawClient client(cluster.daemon.uri());
  CHECK(events_named(client, "offline").empty());
}

TEST_CASE("after discovery-timeout the agents that have come are the inventory") {
  Watched cluster(discovery("size = 3\ndiscovery-timeout = \"0.1s\""));
  WatchingScheduler scheduler(cluster.daemon.uri());
  NodeAgent only(cluster.daemon.uri(), "n7");
  scheduler.until_up({0});
  CHECK(scheduler.resources()["execution"]["nodelist"] == json::parse(R"(["n7"])"));
  CHECK(cluster.daemon.log().find("warning: discovery has timed out: 1 of 3 nodes have reported, n7\n") !=
        std::string::npos);
}

TEST_CASE("what was discovered is taken up again from the store, with every node offline until it is back") {
  Watched cluster(discovery("size = 2", "[cluster]\ntakeover-grace = \"0s\""));
  Agents agents = cluster.agents({"n1", "n2"});
  json resources;
  {
    WatchingScheduler scheduler(cluster.daemon.uri());
    scheduler.until_up({0, 1});
    resources = scheduler.resources();
  }
  cluster.drain("1");
  cluster.daemon.kill();
  agents.clear();
  cluster.daemon.start();
  RawClient client(cluster.daemon.uri());
  CHECK(events_named(client, "resource-define").back()["context"]["method"] == "kvs");
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_up({});
  CHECK(scheduler.resources() == resources);
  CHECK(drained_ranks(client.call("resource.status").json()) == std::set<unsigned>{1});
  NodeAgent back(cluster.daemon.uri(), "n1");
  scheduler.until_up({0});
}

// RFC 33: membership follows the configuration over restarts and reloads, also if the R comes from the store.
TEST_CASE("hosts of queues are found in what was discovered") {
  const auto queue = [](const std::string& hosts) {
    return discovery("size = 2", "[queues.batch]\nhosts = \"" + hosts + '"');
  };
  Watched cluster(queue("n2"));
  const auto members = [&] {
    WatchingScheduler scheduler(cluster.daemon.uri());
    scheduler.until_up({0, 1});
    return scheduler.resources()["execution"].value("properties", json::object());
  };
  const Agents agents = cluster.agents({"n1", "n2"});
  CHECK(members() == json{{"+batch", "1"}});

  cluster.daemon.kill();
  cluster.daemon.configure(queue("n1"));
  cluster.daemon.start();
  CHECK(members() == json{{"+batch", "0"}});

  cluster.daemon.configure(queue("all"));
  cluster.daemon.hang_up();
  CHECK(members() == json{{"+batch", "0-1"}});

  cluster.daemon.kill();
  cluster.daemon.configure(discovery("size = 2"));
  cluster.daemon.start();
  CHECK(members() == json::object());
}

TEST_CASE("a queue may name hosts that did not report, and the log names them") {
  Watched cluster(discovery("size = 2\ndiscovery-timeout = \"0.1s\"", "[queues.batch]\nhosts = \"n[1-2]\""));
  WatchingScheduler scheduler(cluster.daemon.uri());
  NodeAgent only(cluster.daemon.uri(), "n1");
  scheduler.until_up({0});
  CHECK(scheduler.resources()["execution"]["nodelist"] == json::parse(R"(["n1"])"));
  CHECK(scheduler.resources()["execution"]["properties"] == json{{"+batch", "0"}});
  until_logged(cluster.daemon, "queues.batch.hosts: hosts that did not report are left out: n2");
}

TEST_CASE("rediscover asks the agents anew, and hosts keep their ranks") {
  Watched cluster(discovery("size = 2"));
  Agents agents = cluster.agents({"n2", "n10"});
  WatchingScheduler(cluster.daemon.uri()).until_up({0, 1});
  cluster.daemon.kill();
  cluster.daemon.configure(discovery("size = 3\nrediscover = true"));
  cluster.daemon.start();
  WatchingScheduler scheduler(cluster.daemon.uri());
  CHECK_FALSE(scheduler.has_heard());
  agents.push_back(cluster.agent("n1"));
  scheduler.until_up({0, 1, 2});
  CHECK(scheduler.resources()["execution"]["nodelist"] == json::parse(R"(["n[2,10,1]"])"));
}

TEST_CASE("a daemon that ends while it discovers its inventory keeps what it has recorded") {
  Watched cluster(discovery("size = 2"));
  const Agents agents = cluster.agents({"n1", "n2"});
  WatchingScheduler(cluster.daemon.uri()).until_up({0, 1});
  cluster.drain("1");
  cluster.daemon.terminate();
  cluster.daemon.configure(discovery("size = 3\nrediscover = true"));
  cluster.daemon.start();
  cluster.daemon.terminate();
  cluster.daemon.configure(discovery("size = 2"));
  cluster.daemon.start();
  CHECK(drained_ranks(cluster.status()) == std::set<unsigned>{1});
}

TEST_CASE("changes of run time outlive every discovery, and are no part of what is discovered") {
  const std::string anew = discovery("size = 2\nrediscover = true");
  const std::string again = discovery("size = 2");
  Watched cluster(again);
  Agents agents = cluster.agents({"n1", "n2"});
  const auto restart = [&](const std::string& config) {
    cluster.restart(config, agents, {"n1", "n2"});
    WatchingScheduler scheduler(cluster.daemon.uri());
    scheduler.until_up({0, 1});
    return scheduler.resources()["execution"];
  };
  WatchingScheduler(cluster.daemon.uri()).until_up({0, 1});
  cluster.ctl.done({"property", "add", "P", "n1"});
  cluster.ctl.done({"expiration", "set", "4000000000"});
  for (const std::string& config : {anew, again, anew, again}) {
    const json found = restart(config);
    CHECK(found["properties"] == json{{"P", "0"}});
    CHECK(found["expiration"] == 4000000000.0);
  }
  restart(anew);
  cluster.ctl.done({"property", "remove", "P", "n1"});
  cluster.ctl.done({"expiration", "set", "0"});
  for (const std::string& config : {again, anew}) {
    const json found = restart(config);
    CHECK_FALSE(found.contains("properties"));
    CHECK(found["expiration"] == 0.0);
  }
}

TEST_CASE("an excluded node that does not report holds no discovery up") {
  Watched cluster(discovery("size = 3\nexclude = \"n3\""));
  const Agents agents = cluster.agents({"n1", "n2"});
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_up({0, 1});
  CHECK(scheduler.resources()["execution"]["nodelist"] == json::parse(R"(["n[1-2]"])"));
}

TEST_CASE("a host that left for good is no part of a later discovery, whoever still names it") {
  const std::string parts = "[[acquire.partition]]\nname = \"old\"\ntargets = \"n3\"\n";
  Watched cluster(discovery("size = 3", parts));
  Agents agents = cluster.agents({"n1", "n2", "n3"});
  WatchingScheduler(cluster.daemon.uri()).until_up({0, 1});
  cluster.ctl.done({"shrink", "n3"});
  cluster.daemon.kill();
  agents.clear();
  // The agent of the host that left is refused, and does not count.
  cluster.daemon.configure(discovery("size = 3\nrediscover = true", parts));
  cluster.daemon.start();
  RawClient gone(cluster.daemon.uri());
  const RawResponse refused = gone.receive(gone.send("resource.agent", hello("n3"), wire::flag_streaming));
  CHECK(refused.errnum == wire_errno::inval);
  CHECK(refused.text() == "host n3 has left the instance for good");
  agents = cluster.agents({"n1", "n2"});
  for (const auto& agent : agents) agent->expect_log("the rank is not known yet");
  WatchingScheduler scheduler(cluster.daemon.uri());
  CHECK_FALSE(scheduler.has_heard());
  agents.push_back(cluster.agent("n4"));
  scheduler.until_up({0, 1, 2});
  CHECK(scheduler.resources()["execution"]["nodelist"] == json::parse(R"(["n[1-2,4]"])"));
  // The configuration may still exclude the host that left, by its name or by its former rank.
  for (const char* exclude : {"n3", "3", "n2"}) {
    for (const char* rediscover : {"true", "false"}) {
      INFO("exclude = ", std::string(exclude), ", rediscover = ", std::string(rediscover));
      cluster.restart(
          discovery(fmt::format("size = 3\nrediscover = {}\nexclude = \"{}\"", rediscover, exclude), parts),
          agents, {"n1", "n2", "n4"});
      WatchingScheduler later(cluster.daemon.uri());
      later.until_up(exclude == std::string("n2") ? std::set<unsigned>{0, 2} : std::set<unsigned>{0, 1, 2});
    }
  }
}

TEST_CASE("what is discovered and does not fit the configuration stops the daemon in order") {
  const std::string overlap =
      "[[acquire.partition]]\nname = \"a\"\ntargets = \"0\"\n[[acquire.partition]]\nname = \"b\"\ntargets = "
      "\"n1\"\n";
  const std::vector<std::pair<std::string, std::string>> rows{
      {discovery("size = 1\nexclude = \"7\""), "resource.exclude: idset is out of range"},
      {discovery("size = 1", overlap), "partitions a and b overlap: rank 0 (n1) would be in both"},
      {discovery("size = 1", "[[acquire.partition]]\nname = \"a\"\ntargets = \"n9\"\n"), "unknown host: n9"},
  };
  for (const auto& [config, why] : rows) {
    CAPTURE(config);
    Watched cluster(config);
    WatchingScheduler waiting(cluster.daemon.uri());
    RawClient agent(cluster.daemon.uri());
    agent.send("resource.agent", hello("n1"), wire::flag_streaming);
    CHECK(cluster.daemon.process().wait() == 1);
    until_logged(cluster.daemon, "stopping, the discovered inventory is refused: ");
    until_logged(cluster.daemon, why);
  }
}

TEST_CASE("a node that is excluded no more is verified before it comes up") {
  const auto config = [](const char* exclude) {
    return fmt::format("[resource]\nexclude = \"{}\"\n{}", exclude, three_nodes());
  };
  Watched cluster(config("n1"));
  RawClient few(cluster.daemon.uri());
  for (const char* host : {"n0", "n1", "n2"}) {
    const char* cores = host == std::string("n2") ? "0-3" : "0-1";
    few.receive(few.send("resource.agent", hello(host, cores), wire::flag_streaming));
  }
  WatchingScheduler before(cluster.daemon.uri());
  before.until_up({2});
  // n1 failed its verification while it was excluded, and the exclusion undrains n0: neither may come up in
  // between.
  cluster.daemon.configure(config("n0"));
  cluster.daemon.hang_up();
  CHECK(drained_ranks(cluster.status()) == std::set<unsigned>{1});
  cluster.daemon.configure(config(""));
  cluster.daemon.hang_up();
  CHECK(drained_ranks(cluster.status()) == std::set<unsigned>{0, 1});
  CHECK(before.settle().up() == std::set<unsigned>{2});
  CHECK(
      cluster.ctl.output({"drain", "-n", "-o", "{nodelist} {reason}"}).find("missing resources: core[2-3]") !=
      std::string::npos);
  const auto drains = events_named(cluster.operator_client, "drain");
  CHECK(drains.size() == 3);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

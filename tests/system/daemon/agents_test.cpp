// Nodes that join, leave and fail (RFC 28, background): real agents on synthetic hwloc nodes, a real daemon,
// and a scheduler that receives the updates. Times in the configurations are lower bounds only: no test
// depends on a fast machine.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "client/connection.hpp"
#include "node_agent.hpp"
#include "only_thorough.hpp"
#include "skipped.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;
TEST_SUITE_BEGIN("agents");

TEST_CASE("the log tells of nodes that come and go, and of schedulers") {
  Watched cluster("[[resource.config]]\nhosts = \"n[0-1]\"\ncores = \"0-3\"\n[monitor]\nmode = \"agents\"\n");
  const auto until_logged = [&](const std::string& line) {
    std::string log;
    for (const Deadline deadline; log.find(line) == std::string::npos && !deadline.passed();) {
      (void)cluster.operator_client.call("resource.ping");
      log = cluster.daemon.log();
    }
    INFO(log);
    REQUIRE(log.find(line) != std::string::npos);
  };
  NodeAgent agent(cluster.daemon.uri(), "n0");
  until_logged("info: 1 node online: n0\n");
  {
    const WatchingScheduler scheduler(cluster.daemon.uri());
    until_logged(fmt::format("info: the scheduler {} has acquired 2 nodes\n", own_name()));
  }
  until_logged(
      fmt::format("info: the scheduler {} is gone, and its nodes are free for another one", own_name()));
  CHECK(agent.terminate() == 0);
  until_logged("info: 1 node offline: n0\n");
}

TEST_CASE("an agent waits for the name of its host, and follows it") {
  // The test needs a host name of its own, which only root or an unconfined user may have.
  if (Process({"/bin/sh", "-c", "unshare --uts true 2>/dev/null"}).finish().status != 0) {
    test::say_skipped("the right to unshare --uts");
    return;
  }
  Watched cluster("[resource]\nsize = 1\n[monitor]\nmode = \"agents\"\n");
  Process agent({"/usr/bin/unshare", "--uts", "/bin/sh", "-c",
                 fmt::format("hostname localhost && exec {}/resource-agent --uri {} --synthetic '{}' 2>&1",
                             RESOURCED_BIN, cluster.daemon.uri(), four_cores)});
  const auto until = [&](const std::string& text) {
    for (const Deadline deadline; agent.expect_line(deadline).find(text) == std::string::npos;) continue;
  };
  const auto rename = [&](const std::string& name) {
    const Outcome done =
        Process({"/usr/bin/nsenter", "--uts", fmt::format("--target={}", agent.pid()), "hostname", name})
            .finish();
    REQUIRE(done.status == 0);
  };
  until("this host has no name yet, it is localhost");
  rename("n1");
  until("this host is n1 now, it was localhost");
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_up({0});
  CHECK(scheduler.resources()["execution"]["nodelist"] == json::parse(R"(["n1"])"));
  // The daemon, too, refuses a name that a hello may not have.
  RawClient stranger(cluster.daemon.uri());
  const RawResponse refused =
      stranger.receive(stranger.send("resource.agent", hello("localhost"), wire::flag_streaming));
  CHECK(refused.errnum == wire_errno::inval);
  CHECK(refused.text() == "localhost is the name of no node: name the host, or give its agent --hostname");
}

TEST_CASE("a node is offline until its agent says hello, and the scheduler hears of it") {
  Watched cluster(three_nodes());
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_up({});
  NodeAgent one(cluster.daemon.uri(), "n1");
  scheduler.until_up({1});
  one.expect_log("online as rank 1");
  CHECK(cluster.ctl.output({"status", "-n", "-o", "{state} {nodelist}"}) == "avail n1\noffline n[0,2]\n");
  const Agents others = cluster.agents({"n2", "n0"});
  scheduler.until_up({0, 1, 2});
}

TEST_CASE("a killed agent takes its node down after the grace and not before") {
  constexpr std::chrono::milliseconds grace(300);
  Watched cluster(three_nodes("grace = \"0.3s\""));
  const Agents agents = cluster.agents({"n0", "n1", "n2"});
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_up({0, 1, 2});
  const auto killed = std::chrono::steady_clock::now();
  agents[1]->process().kill();
  scheduler.until_up({0, 2});
  CHECK(std::chrono::steady_clock::now() - killed >= grace);
  CHECK(EventFollower(cluster.daemon.uri()).expect("offline")["context"]["idset"] == "1");
}

TEST_CASE("an agent that comes back within the grace is not missed") {
  Watched cluster(three_nodes(forever));
  Agents agents = cluster.agents({"n0", "n1", "n2"});
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_up({0, 1, 2});
  const std::size_t heard = scheduler.heard();
  agents[1]->process().kill();
  agents[1] = cluster.agent("n1");
  agents[1]->expect_log("online as rank 1");
  CHECK(agents[1]->terminate() == 0);
  scheduler.until_up({0, 2});
  CHECK(scheduler.heard() == heard + 1);
}

TEST_CASE("an agent that ends in order takes its node down at once") {
  Watched cluster(three_nodes(forever));
  const Agents agents = cluster.agents({"n0", "n1"});
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_up({0, 1});
  CHECK(agents[0]->terminate() == 0);
  scheduler.until_up({1});
}

TEST_CASE("a silent agent makes its node torpid, and a beat brings it back") {
  Watched cluster(
      "[[resource.config]]\nhosts = \"n[0-2]\"\ncores = \"0-3\"\n"
      "[bus]\nheartbeat-timeout = \"10m\"\n"
      "[monitor]\nmode = \"agents\"\ntorpid-after = \"1s\"\noffline-after = \"20m\"\n");
  const Agents agents = cluster.agents({"n0", "n1"});
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_has(1);
  // A stopped process keeps its connection.
  agents[1]->process().signal(SIGSTOP);
  scheduler.until_lacks(1);
  CHECK(ids(cluster.status()["torpid"].get<std::string>()).contains(1));
  agents[1]->process().signal(SIGCONT);
  scheduler.until_has(1);
  CHECK(events_named(cluster.operator_client, "offline").empty());
  CHECK_FALSE(events_named(cluster.operator_client, "lively").empty());
}

TEST_CASE("an agent that stays silent takes its node down") {
  Watched cluster(
      "[[resource.config]]\nhosts = \"n[0-2]\"\ncores = \"0-3\"\n"
      "[bus]\nheartbeat-timeout = \"10m\"\n"
      "[monitor]\nmode = \"agents\"\ntorpid-after = \"0.5s\"\noffline-after = \"1s\"\nflap-count = 0\n");
  const Agents agents = cluster.agents({"n1"});
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_has(1);
  agents[0]->process().signal(SIGSTOP);
  EventFollower events(cluster.daemon.uri());
  CHECK(events.expect("torpid")["context"]["idset"] == "1");
  CHECK(events.expect("offline")["context"]["idset"] == "1");
  scheduler.until_lacks(1);
  agents[0]->process().signal(SIGCONT);
  scheduler.until_has(1);
}

/// The contexts of the last `restart` event and of all `offline` events.
struct Restarted {
  json restart;
  std::vector<json> offline;
};
Restarted restarted(RawClient& client) {
  const std::vector<json> starts = events_named(client, "restart");
  Restarted found{starts.back().at("context"), events_named(client, "offline")};
  std::erase_if(found.offline,
                [&](const json& event) { return event.at("timestamp") < starts.back().at("timestamp"); });
  return found;
}

TEST_CASE("after a restart the nodes that were online are up at once, and stay so if their agents come back" *
          test::only_thorough()) {
  bool in_order = false;
  SUBCASE("of a daemon that was killed") {}
  SUBCASE("of a daemon that ended in good order") { in_order = true; }
  Watched cluster(three_nodes() + "[cluster]\ntakeover-grace = \"3s\"\n");
  Agents agents = cluster.agents({"n0", "n1", "n2"});
  {
    WatchingScheduler scheduler(cluster.daemon.uri());
    scheduler.until_up({0, 1, 2});
    CHECK(agents[2]->terminate() == 0);
    scheduler.until_up({0, 1});
  }
  in_order ? (void)cluster.daemon.terminate() : cluster.daemon.kill();
  agents[1]->process().kill();
  cluster.daemon.start();
  WatchingScheduler scheduler(cluster.daemon.uri());
  std::set<unsigned> first;
  scheduler.until([&](const SchedulerView& view) {
    if (first.empty()) first = view.up();
    return view.up() == std::set<unsigned>{0};
  });
  CHECK(first == std::set<unsigned>{0, 1});
  RawClient client(cluster.daemon.uri());
  const Restarted found = restarted(client);
  CHECK(found.restart.at("online") == "0-1");
  REQUIRE(found.offline.size() == 1);
  CHECK(found.offline.front().at("context").at("idset") == "1");
}

TEST_CASE(
    "nodes are offline at first after a longer time without a daemon, and if the last one did not watch") {
  const std::string without = "[[resource.config]]\nhosts = \"n[0-2]\"\ncores = \"0-3\"\n";
  bool watched = false;
  SUBCASE("after an hour") { watched = true; }
  SUBCASE("as all nodes were always online") {}
  Watched cluster(watched ? three_nodes() : without);
  Agents agents = cluster.agents({"n0"});
  if (watched) WatchingScheduler(cluster.daemon.uri()).until_up({0});
  cluster.daemon.kill();
  agents.clear();
  const std::string file = cluster.dir / "state/resourced.lock";
  std::string lock = read_file(file);
  const std::size_t position = lock.find("watched ");
  REQUIRE((position != std::string::npos) == watched);
  if (watched) {
    constexpr std::size_t digits = 20;
    constexpr std::int64_t hour = 3600;
    const std::int64_t then = std::stoll(lock.substr(position + 8, digits)) - hour;
    std::ofstream(file) << lock.replace(position + 8, digits, fmt::format("{:020}", then));
  }
  cluster.daemon.configure(three_nodes());
  cluster.daemon.start();
  RawClient client(cluster.daemon.uri());
  CHECK(restarted(client).restart.at("online") == "");
  CHECK(client.call("resource.status").json().at("online") == "");
}

TEST_CASE(
    "agents come back by themselves to a daemon that was killed, and a node that died meanwhile does not") {
  Watched cluster(three_nodes() + "[cluster]\ntakeover-grace = \"0s\"\n");
  const Agents agents = cluster.agents({"n0", "n1", "n2"});
  {
    WatchingScheduler scheduler(cluster.daemon.uri());
    scheduler.until_up({0, 1, 2});
  }
  cluster.daemon.kill();
  agents[1]->process().kill();
  cluster.daemon.start();
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until([](const SchedulerView& view) {
    CHECK_FALSE(view.up().contains(1));
    return view.up().size() == 2;
  });
  CHECK_FALSE(scheduler.settle().up().contains(1));
}

TEST_CASE("with shrink-lost a node that does not return leaves for good") {
  Watched cluster(discovery("size = 2\nshrink-lost = true", "grace = \"0.1s\"\nlost-after = \"0.1s\""));
  Agents agents = cluster.agents({"n0", "n1"});
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_up({0, 1});
  agents[1]->process().kill();
  scheduler.until([](const SchedulerView& view) { return !view.targets().contains(1); });
  CHECK(scheduler.settle().up() == std::set<unsigned>{0});
  NodeAgent late(cluster.daemon.uri(), "n1");
  late.expect_log("the daemon refuses this agent: host n1 is not in the inventory");
}

TEST_CASE("a node that comes and goes too often is drained once") {
  Watched cluster(three_nodes("grace = \"1h\"\ncoalesce = \"0s\"\nflap-count = 2\nflap-window = \"1h\""));
  WatchingScheduler scheduler(cluster.daemon.uri());
  EventFollower events(cluster.daemon.uri());
  for (int toggle = 0; toggle < 3; ++toggle) {
    NodeAgent agent(cluster.daemon.uri(), "n1");
    CHECK(events.expect("online")["context"]["idset"] == "1");
    scheduler.until_up({1});
    CHECK(agent.terminate() == 0);
    scheduler.until_up({});
    if (toggle < 2) CHECK(events.expect("offline")["context"]["idset"] == "1");
  }
  CHECK(events.expect("drain")["context"]["reason"] == "flapping: offline more than 2 times within 1h");
  CHECK(events.expect("offline")["context"]["idset"] == "1");
  for (int toggle = 0; toggle < 3; ++toggle) {
    NodeAgent agent(cluster.daemon.uri(), "n1");
    events.expect("online");
    CHECK(agent.terminate() == 0);
    events.expect("offline");
  }
  CHECK(scheduler.settle().up().empty());
  CHECK(events_named(cluster.operator_client, "drain").size() == 1);
}

TEST_CASE("a further agent of a host with several targets gets one that its agent has left, and no other") {
  TempDir dir;
  dir.write("R", R"({"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-3"}}],)"
                 R"("nodelist":["h,h"],"starttime":0,"expiration":0}})");
  const Daemon daemon(dir, {.config = "[resource]\npath = \"R\"\n[monitor]\nmode = \"agents\"\n"});
  const auto join = [](RawClient& client) {
    return client.receive(client.send("resource.agent", hello("h"), wire::flag_streaming));
  };
  auto first = std::make_unique<RawClient>(daemon.uri());
  RawClient second(daemon.uri());
  RawClient third(daemon.uri());
  CHECK(join(*first).json()["rank"] == 0);
  CHECK(join(second).json()["rank"] == 1);
  const RawResponse refused = join(third);
  CHECK(refused.errnum == wire_errno::exist);
  CHECK(refused.text() == "each of the 2 targets of host h has an agent");
  // Both agents still have their targets: their beats are accepted, and no other agent has replaced them.
  for (RawClient* client : {first.get(), &second}) {
    CHECK(client->call("resource.agent-beat").errnum == 0);
    take_arrived(*client, [](const RawResponse& response) { FAIL(response.text()); });
  }
  first.reset();
  RawResponse admitted = join(third);
  while (admitted.errnum == wire_errno::exist) admitted = join(third);
  CHECK(admitted.json()["rank"] == 0);
}

TEST_CASE("the later of two agents of one host speaks for it, and the end of the earlier is nothing") {
  Watched cluster(three_nodes("grace = \"0s\""));
  WatchingScheduler scheduler(cluster.daemon.uri());
  auto earlier = std::make_unique<RawClient>(cluster.daemon.uri());
  const auto one = earlier->send("resource.agent", hello("n1"), wire::flag_streaming);
  CHECK(earlier->receive(one).json()["rank"] == 1);
  scheduler.until_up({1});
  const std::size_t heard = scheduler.heard();
  RawClient later(cluster.daemon.uri());
  const auto two = later.send("resource.agent", hello("n1"), wire::flag_streaming);
  CHECK(later.receive(two).json()["rank"] == 1);
  const RawResponse ended = earlier->receive(one);
  CHECK(ended.errnum == wire_errno::exist);
  CHECK(ended.text() == "another agent speaks for n1 now");
  earlier->send("resource.agent-cancel", {{"matchtag", one}}, wire::flag_noresponse);
  earlier->settle();
  earlier.reset();
  CHECK(cluster.status()["offline"] == "0,2");
  CHECK(scheduler.settle().up() == std::set<unsigned>{1});
  CHECK(scheduler.heard() == heard);
  later.send("resource.agent-cancel", {{"matchtag", two}}, wire::flag_noresponse);
  scheduler.until_up({});
}

/// A daemon on tcp that knows the keys of an agent and of a user.
struct KeyedCluster {
  static std::string keygen(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{RESOURCED_BIN "/resourcectl", "keygen"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    Outcome outcome = Process(command).finish();
    if (outcome.status != 0) throw std::runtime_error(outcome.err);
    return outcome.out;
  }
  static std::string as_agent(std::string block) {
    return block.replace(block.find("[\"user\"]"), 8, "[\"agent\"]");
  }

  TempDir dir;
  std::string server_key = dir / "server.key";
  std::string agent_key = dir / "agent.key";
  std::string user_key = dir / "user.key";
  /// The server's key comes first, as the others need its public key.
  std::string server = keygen({server_key});
  std::string agent = as_agent(keygen({agent_key, "--server-key", server_key}));
  std::string user = keygen({user_key, "--server-key", server_key});
  Daemon daemon{
      dir,
      {.config = fmt::format("{}\n[bus]\ncurve-key-file = \"{}\"\n[monitor]\nmode = \"agents\"\n\n{}{}",
                             eight_nodes, server_key, agent, user),
       .listen = {"tcp://127.0.0.1:*", "ipc://" + (dir / "bus").string()}}};
};

/// The errno of the response to a request; 0 for a success.
int errno_of(client::Connection& connection, const std::string& topic, const json& payload, bool streaming) {
  int errnum = 0;
  client::SendOptions options;
  options.streaming = streaming;
  options.timeout = client::Milliseconds(30000);
  connection.send(
      topic, payload,
      [&](const client::Response& response) {
        errnum = response.ok() ? 0 : response.error().errnum();
        connection.stop();
      },
      options);
  connection.run();
  return errnum;
}

TEST_CASE_FIXTURE(KeyedCluster, "the key of an agent is good for nothing but being an agent") {
  NodeAgent node(daemon.uri(), "test3", {"--key", agent_key, "--synthetic", four_cores});
  WatchingScheduler scheduler(daemon.endpoints()[1]);
  scheduler.until_up({3});

  client::ConnectionOptions options;
  options.key_file = agent_key;
  client::Connection connection(daemon.uri(), options);
  const json targets{{"targets", "3"}, {"reason", "mine"}};
  for (const char* topic :
       {"resource.drain", "resource.undrain", "resource.property", "resource.expiration", "resource.shrink",
        "resource.status", "resource.sched-status", "resource.get", "resource.reload", "resource.stats-get",
        "resource.ping", "resource.acquire-mute", "feasibility.check", "config.get", "attr.get"}) {
    CAPTURE(topic);
    CHECK(errno_of(connection, topic, targets, false) == EPERM);
  }
  CHECK(errno_of(connection, "resource.acquire", nullptr, true) == EPERM);
  CHECK(errno_of(connection, "resource.journal", json::object(), true) == EPERM);
  CHECK(errno_of(connection, "resource.agent", hello("test4"), true) == 0);
  scheduler.until_up({3, 4});

  // A key without the role agent is refused, and so is a client without a key.
  NodeAgent pretender(daemon.uri(), "test5", {"--key", user_key, "--synthetic", four_cores});
  pretender.expect_log("resource.agent requires the role agent");
  NodeAgent nobody(daemon.uri(), "test6");
  nobody.expect_log("a key");
  CHECK(scheduler.settle().up() == std::set<unsigned>{3, 4});
}

TEST_CASE_FIXTURE(KeyedCluster,
                  "a key that is bound to hosts speaks for these alone, and a reload may take some") {
  const auto configure = [&](const std::string& hosts) {
    daemon.configure(
        fmt::format("{}\n[bus]\ncurve-key-file = \"{}\"\n[monitor]\nmode = \"agents\"\n"
                    "grace = \"0.1s\"\n\n{}hosts = \"{}\"\n",
                    eight_nodes, server_key, agent, hosts));
    daemon.hang_up();
  };
  configure("test[2-3]");
  WatchingScheduler scheduler(daemon.endpoints()[1]);
  NodeAgent two(daemon.uri(), "test2", {"--key", agent_key, "--synthetic", four_cores});
  NodeAgent three(daemon.uri(), "test3", {"--key", agent_key, "--synthetic", four_cores});
  scheduler.until_up({2, 3});
  const std::string refusal =
      "test4 is not among the hosts of key agent: add it to hosts in its [[access.key]]";
  NodeAgent four(daemon.uri(), "test4", {"--key", agent_key, "--synthetic", four_cores});
  four.expect_log(refusal);
  // An agent without a key is that of a user of this machine.
  NodeAgent five(daemon.endpoints()[1], "test5");
  scheduler.until_up({2, 3, 5});
  {
    client::ConnectionOptions options;
    options.key_file = agent_key;
    client::Connection connection(daemon.uri(), options);
    CHECK(errno_of(connection, "resource.agent", hello("test3"), true) == 0);
    CHECK(errno_of(connection, "resource.agent", hello("test4"), true) == EPERM);
    CHECK(errno_of(connection, "resource.drain", {{"targets", "3"}}, false) == EPERM);
    CHECK(errno_of(connection, "resource.undrain", {{"targets", "3"}}, false) == EPERM);
  }

  configure("test3");
  two.expect_log("test2 is not among the hosts of key agent");
  scheduler.until_lacks(2);
}

/// An R with more than one node.
json two_nodes() {
  json payload = hello("n1");
  payload["R"]["execution"]["R_lite"][0]["rank"] = "0-1";
  payload["R"]["execution"]["nodelist"] = {"n[1-2]"};
  return payload;
}

TEST_CASE("an invalid hello is refused, and changes nothing") {
  Watched cluster(three_nodes());
  const auto without_r = [](json payload) { return payload.erase("R"), payload; };
  const auto with_r = [](const json& r) { return json{{"hostname", "n1"}, {"R", r}}; };
  json many = hello("n1");
  for (int i = 0; i < 1024; ++i) many["R"]["execution"]["properties"][fmt::format("p{}", i)] = "0";
  const std::vector<std::pair<std::string, std::uint32_t>> refused{
      {many.dump(), wire_errno::proto},
      {"", wire_errno::proto},
      {"{", wire_errno::proto},
      {"[]", wire_errno::proto},
      {"{}", wire_errno::proto},
      {without_r(hello("n1")).dump(), wire_errno::proto},
      {R"({"hostname":1,"R":{}})", wire_errno::proto},
      {with_r("R").dump(), wire_errno::proto},
      {with_r(json::object()).dump(), wire_errno::inval},
      {two_nodes().dump(), wire_errno::inval},
      {hello("n[0-2]").dump(), wire_errno::inval},
      {hello("").dump(), wire_errno::inval},
      {hello("elsewhere").dump(), wire_errno::inval},
      {hello("n1", "0-4294967295000").dump(), wire_errno::inval},
      {hello("n1", "").dump(), wire_errno::inval},
      {hello("n1", "0-3", "", std::string(16000, 'n')).dump(), wire_errno::inval},
      {hello("n1", "0-3", "", std::string(16384, 'n')).dump(), wire_errno::msgsize},
      {with_r({{"version", 1}, {"more", std::string(std::size_t{1} << 20, 'x')}}).dump(),
       wire_errno::msgsize},
      {fmt::format(R"({{"hostname":"n1","R":{}}})", std::string(16000, '[')), wire_errno::proto},
  };
  RawClient agent(cluster.daemon.uri());
  for (const auto& [payload, errnum] : refused) {
    CAPTURE(payload.substr(0, 200));
    const auto stream =
        agent.send_text("resource.agent", payload + std::string(1, '\0'), wire::flag_streaming);
    const RawResponse response = agent.receive(stream);
    CAPTURE(response.text());
    CHECK(response.errnum == errnum);
  }
  // A hello without the streaming flag, and beats without an agent.
  CHECK(agent.call("resource.agent", hello("n1")).errnum == wire_errno::proto);
  CHECK(agent.call("resource.agent-beat").errnum == 0);
  CHECK(agent.call("resource.agent-beat", {{"matchtag", 1}}).errnum == 0);
  CHECK(agent.call("resource.agent-beat", {{"matchtag", -1}}).errnum == wire_errno::proto);
  CHECK(agent.call("resource.agent-beat", {{"matchtag", 4294967296}}).errnum == wire_errno::proto);
  CHECK(cluster.status()["offline"] == "0-2");
  CHECK(events_named(cluster.operator_client, "online").empty());
}

TEST_CASE("without [monitor] there are no agents") {
  Cluster cluster;
  const auto stream = cluster.operator_client.send("resource.agent", hello("test1"), wire::flag_streaming);
  const RawResponse refused = cluster.operator_client.receive(stream);
  CHECK(refused.errnum == wire_errno::nosys);
  CHECK(refused.text().find("monitor.mode is static") != std::string::npos);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

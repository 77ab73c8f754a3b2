// resourcectl rolling with the real daemon and real commands: the order of nodes, kills of the program at
// each step and of the daemon, failures, signals and reboots.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "fixture.hpp"
#include "harness/terminal.hpp"
#include "node_agent.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

/// Arguments for `rolling` in the directory of a test; the command appends the name of its host to the file
/// `worked`.
struct Work {
  explicit Work(Cluster& its_cluster) : cluster(its_cluster) {}

  [[nodiscard]] std::vector<std::string> arguments(const std::vector<std::string>& options,
                                                   const std::string& script = "") const {
    std::vector<std::string> all{"rolling", "--state", (cluster.dir / "rolled").string()};
    all.insert(all.end(), options.begin(), options.end());
    const std::string command = fmt::format("echo {{host}} >> {}; {}", worked_file().string(), script);
    all.insert(all.end(), {"--", "sh", "-c", command});
    return all;
  }
  [[nodiscard]] std::filesystem::path worked_file() const { return cluster.dir / "worked"; }
  /// How often the command was started on each host.
  [[nodiscard]] std::map<std::string, int> worked() const {
    std::map<std::string, int> hosts;
    if (!std::filesystem::exists(worked_file())) return hosts;
    const std::string text = read_file(worked_file());
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      ++hosts[text.substr(begin, end - begin)];
      begin = end + 1;
    }
    return hosts;
  }
  /// The drained hosts with their reasons.
  [[nodiscard]] std::string drained() const {
    return cluster.ctl.output({"drain", "-n", "-o", "{nodelist} {reason}"});
  }

  Cluster& cluster;
};

std::map<std::string, int> once(const std::vector<std::string>& hosts) {
  std::map<std::string, int> counts;
  for (const std::string& host : hosts) counts[host] = 1;
  return counts;
}

/// Reads lines of `rolling --json` up to this step of this host, and returns that line.
json expect_step(Process& rolling, const std::string& host, const std::string& step) {
  while (true) {
    json line = json::parse(rolling.expect_line());
    if (line.value("host", "") == host && line["step"] == step) return line;
  }
}

TEST_SUITE_BEGIN("rolling");

TEST_CASE("rolling waits for the allocations of a node, and works on one after the other") {
  Cluster cluster;
  const Work work(cluster);
  RawClient scheduler(cluster.daemon.uri());
  scheduler.receive(scheduler.send("resource.acquire", {{"allocations", true}}, wire::flag_streaming));
  const json entry{{"rank", "1"}, {"children", {{"core", "0"}}}};
  const json execution{{"R_lite", json::array({entry})},
                       {"nodelist", json::array({"test1"})},
                       {"starttime", 0},
                       {"expiration", 0}};
  REQUIRE(scheduler.call("resource.alloc", {{"id", "j1"}, {"R", {{"version", 1}, {"execution", execution}}}})
              .errnum == 0);
  const auto rolling =
      cluster.ctl.start(work.arguments({"--max", "1", "--json", "--reason", "kernel", "test[0-2]"}));
  expect_step(*rolling, "test1", "idle");
  CHECK(work.worked() == once({"test0"}));
  CHECK(work.drained() == "test1 kernel\n");
  REQUIRE(scheduler.call("resource.free", {{"id", "j1"}}).errnum == 0);
  expect_step(*rolling, "test2", "done");
  CHECK(rolling->finish().status == 0);
  CHECK(work.worked() == once({"test0", "test1", "test2"}));
  CHECK(work.drained().empty());
  // Completed work leaves no files, so the next run starts anew.
  for (const auto& file : std::filesystem::directory_iterator(cluster.dir.path()))
    CHECK_FALSE(file.path().filename().string().starts_with("rolled."));
  CHECK_FALSE(std::filesystem::exists(cluster.dir / "rolled"));
}

TEST_CASE("rolling where nobody reports what runs drains nothing") {
  Cluster cluster;
  const Work work(cluster);
  const Outcome refused = cluster.ctl.run(work.arguments({"--max", "1", "test[0-1]"}));
  CHECK(refused.status == 1);
  CHECK(refused.err == "resourcectl: nobody reports what runs on test[0-1]\n");
  CHECK(work.drained().empty());
  CHECK_FALSE(std::filesystem::exists(cluster.dir / "rolled"));
  CHECK(cluster.ctl.run({"rolling", "--max", "0", "test0", "--", "true"}).status == 2);
  CHECK(cluster.ctl.run({"rolling", "--max", "1", "test0", "true"}).status == 2);
  CHECK(cluster.ctl.run({"rolling", "test0", "--", "true"}).status == 2);
}

TEST_CASE("a command has its host in the environment, and no host that ssh or a shell takes for more") {
  Cluster cluster;
  const std::string state = (cluster.dir / "rolled").string();
  const std::string worked = (cluster.dir / "worked").string();
  const std::vector<std::string> command{"sh", "-c", fmt::format("echo \"$RESOURCED_HOST\" >> {}", worked)};
  std::vector<std::string> roll{"rolling", "--state",       state,       "--max",
                                "1",       "--assume-idle", "test[0-1]", "--"};
  roll.insert(roll.end(), command.begin(), command.end());
  CHECK(cluster.ctl.run(roll).status == 0);
  CHECK(read_file(worked) == "test0\ntest1\n");
  // A state file may come from a run against another daemon, whose nodes may have any name.
  for (const std::string host : {"-oProxyCommand=x", "$(reboot)", "a;b"}) {
    CAPTURE(host);
    std::filesystem::remove(worked);
    const json header{{"version", 3},
                      {"uri", cluster.daemon.uri()},
                      {"targets", "test[0-1]"},
                      {"command", command},
                      {"reboot", false}};
    const json left{{"host", host}, {"step", "idle"}, {"reason", "kernel"}};
    const json begun{{"begun", 0}};
    cluster.dir.write("rolled", header.dump() + '\n' + left.dump() + '\n' + begun.dump() + '\n');
    const Outcome refused = cluster.ctl.run(roll);
    CHECK(refused.status == 1);
    CHECK(refused.err.starts_with(fmt::format("resourcectl: \"{}\" cannot be the name of a node", host)));
    CHECK_FALSE(std::filesystem::exists(worked));
    std::filesystem::remove(state);
  }
}

TEST_CASE("rolling that is killed at any step goes on, and works on each node once") {
  constexpr int most_kills = 60;
  int kills = 0;
  for (int lines = 0; lines < 14; ++lines) {
    CAPTURE(lines);
    Cluster cluster;
    const Work work(cluster);
    const auto arguments = work.arguments({"--max", "2", "--json", "--assume-idle", "test[0-3]"});
    // Kill several runs after this many lines; the last run is not killed.
    for (int i = 0; i < 4; ++i) {
      const auto rolling = cluster.ctl.start(arguments);
      bool has_ended = false;
      for (int line = 0; line < lines && !has_ended; ++line) has_ended = !rolling->read_line().has_value();
      if (has_ended) {
        const Outcome outcome = rolling->finish();
        CAPTURE(outcome.err);
        CHECK(outcome.status == 0);
        break;
      }
      rolling->kill();
      ++kills;
      const json status = cluster.status();
      CHECK(drained_ranks(status).size() <= 2);
      // The run was complete before it was killed; another one would start anew.
      if (!std::filesystem::exists(cluster.dir / "rolled") && !work.worked().empty()) break;
    }
    if (std::filesystem::exists(cluster.dir / "rolled") || work.worked().empty()) {
      const Outcome last = cluster.ctl.run(arguments);
      CAPTURE(last.err);
      CHECK(last.status == 0);
    }
    CHECK(work.worked() == once({"test0", "test1", "test2", "test3"}));
    CHECK(work.drained().empty());
  }
  CHECK(kills > 20);
  CHECK(kills < most_kills);
}

TEST_CASE("a command goes on when rolling is killed, and the next run waits for its end") {
  Cluster cluster;
  const Work work(cluster);
  const std::string gate = (cluster.dir / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const auto arguments =
      work.arguments({"--max", "1", "--json", "--assume-idle", "test0"}, fmt::format("read line < {}", gate));
  for (int i = 0; i < 3; ++i) {
    const auto rolling = cluster.ctl.start(arguments);
    if (i == 0) {
      expect_step(*rolling, "test0", "run");
      while (work.worked().empty()) cluster.operator_client.call("resource.ping", json::object());
    }
    rolling->kill();
  }
  const auto last = cluster.ctl.start(arguments);
  std::ofstream(gate) << "go\n";
  expect_step(*last, "test0", "done");
  CHECK(last->finish().status == 0);
  CHECK(work.worked() == once({"test0"}));
}

TEST_CASE("the first failure stops rolling, with the node drained; the next run tries it again") {
  Cluster cluster;
  const Work work(cluster);
  const std::string sick = (cluster.dir / "sick").string();
  cluster.dir.write("sick", "");
  const auto arguments = work.arguments(
      {"--max", "1", "--assume-idle", "test[0-2]"},
      fmt::format("if test {{host}} = test1 && test -e {}; then echo no firmware >&2; exit 3; fi", sick));
  const Outcome failed = cluster.ctl.run(arguments);
  CHECK(failed.status == 1);
  CHECK(failed.err ==
        "resourcectl: test1: the command ended with status 3: no firmware; drained: test1; left: test[1-2]; "
        "run it again to go on\n");
  CHECK(work.drained() == "test1 rolling: the command ended with status 3: no firmware\n");
  std::filesystem::remove(sick);
  const Outcome done = cluster.ctl.run(arguments);
  CHECK(done.status == 0);
  constexpr std::string_view first_line = "continues the run of 20";
  CHECK(done.out.starts_with(first_line));
  CHECK(done.out.substr(done.out.find('\n') + 1) ==
        "test1: drained, waits until nothing runs\n"
        "test1: idle, the command runs\n"
        "test1: waits until the node is online and healthy\n"
        "test1: done\n"
        "test2: drained, waits until nothing runs\n"
        "test2: idle, the command runs\n"
        "test2: waits until the node is online and healthy\n"
        "test2: done\n"
        "done: 3 nodes\n");
  CHECK(work.worked() == std::map<std::string, int>{{"test0", 1}, {"test1", 2}, {"test2", 1}});
  CHECK(work.drained().empty());
}

TEST_CASE("rolling leaves nodes alone that somebody else has drained, and goes on when there is room") {
  Cluster cluster;
  const Work work(cluster);
  cluster.drain("1,7", "fan");
  const Outcome outcome = cluster.ctl.run(work.arguments({"--max", "2", "--assume-idle", "test[0-2]"}));
  CHECK(outcome.status == 0);
  CHECK(outcome.out.find("test1: skipped: drained already: fan\n") != std::string::npos);
  CHECK(work.worked() == once({"test0", "test2"}));
  CHECK(work.drained() == "test[1,7] fan\n");
  // One of the two nodes is drained, so the budget is used up until the drain ends.
  const auto rolling =
      cluster.ctl.start(work.arguments({"--max", "1", "--json", "--assume-idle", "test[6-7]"}));
  CHECK(expect_step(*rolling, "test6", "waiting")["why"] == "test7 uses the budget");
  expect_step(*rolling, "test7", "skipped");
  CHECK(work.worked() == once({"test0", "test2"}));
  cluster.undrain("7");
  CHECK(rolling->finish().status == 0);
  CHECK(work.worked() == once({"test0", "test2", "test6"}));
}

TEST_CASE("what uses the budget is printed once, and the timeout bounds the wait for it") {
  Cluster cluster;
  const Work work(cluster);
  cluster.drain("6,7", "fan");
  const Outcome outcome =
      cluster.ctl.run(work.arguments({"--max", "1", "--assume-idle", "--timeout", "100ms", "test[5-7]"}));
  CHECK(outcome.status == 1);
  CHECK(outcome.out ==
        "test5: waits: test[6-7] use the budget\n"
        "test6: skipped: drained already: fan\n"
        "test7: skipped: drained already: fan\n");
  CHECK(
      outcome.err ==
      "resourcectl: test5: not begun after 100ms: test[6-7] use the budget; left: test5; run it again to go "
      "on\n");
  CHECK(work.worked().empty());
  CHECK(work.drained() == "test[6-7] fan\n");
}

TEST_CASE("an undrain after a kill ends the claim: the next run does the node properly") {
  Cluster cluster;
  const Work work(cluster);
  const std::string gate = (cluster.dir / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  std::vector<std::string> options{"--max", "1", "--json", "--assume-idle"};
  std::string step = "run";
  SUBCASE("the command has ended meanwhile") {}
  SUBCASE("the node was to reboot") {
    options.emplace_back("--reboot");
    step = "offline";
  }
  options.emplace_back("test0");
  const auto arguments = work.arguments(options, fmt::format("read line < {}", gate));
  const auto killed = cluster.ctl.start(arguments);
  expect_step(*killed, "test0", "run");
  if (step == "offline") {
    std::ofstream(gate) << "go\n";
    expect_step(*killed, "test0", "offline");
  }
  while (work.worked().empty()) cluster.operator_client.call("resource.ping", json::object());
  killed->kill();
  cluster.undrain("0");
  if (step == "run") std::ofstream(gate) << "go\n";

  const auto rolling = cluster.ctl.start(arguments);
  CHECK(json::parse(rolling->expect_line()).contains("continues"));
  expect_step(*rolling, "test0", "drain");
  expect_step(*rolling, "test0", "run");
  CHECK(drained_ranks(cluster.status()) == std::set<unsigned>{0});
  std::ofstream(gate) << "go\n";
  if (step == "run") {
    expect_step(*rolling, "test0", "done");
    CHECK(rolling->finish().status == 0);
  } else {
    expect_step(*rolling, "test0", "offline");
    // A node that an operator undrains during a run is left to that operator.
    cluster.undrain("0");
    CHECK(expect_step(*rolling, "test0", "skipped")["why"] == "undrained by others");
    CHECK(rolling->finish().status == 0);
  }
  CHECK(work.worked() == std::map<std::string, int>{{"test0", 2}});
  CHECK(work.drained().empty());
}

TEST_CASE("a run without --reboot does not continue one with it") {
  Cluster cluster;
  const Work work(cluster);
  const auto rolling =
      cluster.ctl.start(work.arguments({"--max", "1", "--json", "--assume-idle", "--reboot", "test0"}));
  expect_step(*rolling, "test0", "offline");
  rolling->kill();
  const Outcome refused = cluster.ctl.run(work.arguments({"--max", "1", "--assume-idle", "test0"}));
  CHECK(refused.status == 1);
  CHECK(refused.err.ends_with(
      "rolled: the state of a run with --reboot; run it so to go on, or name another file with --state\n"));
  CHECK(work.worked() == once({"test0"}));
}

TEST_CASE("nodes that are removed for good are reported and passed over") {
  Cluster cluster;
  const Work work(cluster);
  const std::string gate = (cluster.dir / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const auto arguments = work.arguments({"--max", "1", "--assume-idle", "test[0-2]"},
                                        fmt::format("test {{host}} = test2 || read line < {}", gate));
  const auto rolling = cluster.ctl.start(arguments);
  while (work.worked().empty()) cluster.operator_client.call("resource.ping", json::object());
  bool is_killed = false;
  SUBCASE("between two runs") { is_killed = true; }
  SUBCASE("while it runs") {}
  if (is_killed) rolling->kill();
  REQUIRE(cluster.ctl.run({"shrink", "--yes", "test[0-1]"}).status == 0);
  std::ofstream(gate) << "go\n";
  const Outcome outcome = is_killed ? cluster.ctl.run(arguments) : rolling->finish();
  CAPTURE(outcome.err);
  CAPTURE(outcome.out);
  CHECK(outcome.status == 0);
  CHECK(outcome.out.find("test0: skipped: not in the inventory\n") != std::string::npos);
  CHECK(outcome.out.find("test1: skipped: not in the inventory\n") != std::string::npos);
  CHECK(outcome.out.ends_with("test2: done\ndone: 1 node\n"));
  CHECK(work.worked() == once({"test0", "test2"}));
}

/// Sends a signal, and waits until the process has taken it: a busy machine may run the process much later.
void deliver(const Process& process, int number) {
  process.signal(number);
  const auto is_pending = [&] {
    constexpr std::string_view key = "ShdPnd:\t";
    const std::string status = read_file(fmt::format("/proc/{}/status", process.pid()));
    const std::size_t mask = status.find(key);
    REQUIRE(mask != std::string::npos);
    return (std::stoull(status.substr(mask + key.size()), nullptr, 16) >> (number - 1) & 1) != 0;
  };
  while (is_pending()) continue;
}

TEST_CASE("a signal begins nothing new, lets the node at work finish, and says what is left") {
  // SIGINT, as from Ctrl-C, must end the program by the signal: otherwise a shell would go on with its next
  // line.
  struct End {
    int signal;
    int status;
  };
  End end{};
  SUBCASE("SIGTERM") { end = {SIGTERM, 1}; }
  SUBCASE("SIGHUP, as of a lost ssh") { end = {SIGHUP, 1}; }
  SUBCASE("SIGINT") { end = {SIGINT, 128 + SIGINT}; }
  Cluster cluster;
  const Work work(cluster);
  const std::string gate = (cluster.dir / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const auto arguments = work.arguments({"--max", "1", "--assume-idle", "test[0-2]"},
                                        fmt::format("test {{host}} != test0 || read line < {}", gate));
  const auto rolling = cluster.ctl.start(arguments);
  while (work.worked().empty()) cluster.operator_client.call("resource.ping", json::object());
  deliver(*rolling, end.signal);
  std::ofstream(gate) << "go\n";
  const Outcome interrupted = rolling->finish();
  CHECK(interrupted.status == end.status);
  CHECK(interrupted.err == "resourcectl: interrupted; left: test[1-2]; run it again to go on\n");
  CHECK(work.drained().empty());
  CHECK(cluster.ctl.run(arguments).status == 0);
  CHECK(work.worked() == once({"test0", "test1", "test2"}));
}

TEST_CASE("an output that nobody reads any more begins nothing new, and lets the node at work finish") {
  Cluster cluster;
  const Work work(cluster);
  const std::string gate = (cluster.dir / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  auto arguments = work.arguments({"--json", "--max", "1", "--assume-idle", "test[0-2]"},
                                  fmt::format("test {{host}} != test0 || read line < {}", gate));
  const auto rolling = cluster.ctl.start_piped(arguments, R"(grep -m 1 '"run"')");
  while (work.worked().empty()) cluster.operator_client.call("resource.ping", json::object());
  std::ofstream(gate) << "go\n";
  const Outcome outcome = rolling->finish();
  CHECK(outcome.err == "resourcectl: interrupted; left: test[1-2]; run it again to go on\n");
  CHECK(work.drained().empty());
  CHECK(work.worked() == once({"test0"}));
}

TEST_CASE("under nohup a hang-up of the terminal changes nothing") {
  Cluster cluster;
  const Work work(cluster);
  const std::string gate = (cluster.dir / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const auto arguments = work.arguments({"--max", "1", "--assume-idle", "test[0-1]"},
                                        fmt::format("test {{host}} != test0 || read line < {}", gate));
  std::signal(SIGHUP, SIG_IGN);
  const auto rolling = cluster.ctl.start(arguments);
  std::signal(SIGHUP, SIG_DFL);
  while (work.worked().empty()) cluster.operator_client.call("resource.ping", json::object());
  rolling->signal(SIGHUP);
  std::ofstream(gate) << "go\n";
  CHECK(rolling->finish().status == 0);
  CHECK(work.worked() == once({"test0", "test1"}));
}

TEST_CASE("rolling goes on over kills of the daemon") {
  Cluster cluster;
  const Work work(cluster);
  const auto rolling =
      cluster.ctl.start(work.arguments({"--max", "2", "--json", "--assume-idle", "test[0-7]"}));
  for (const char* host : {"test0", "test3", "test5"}) {
    expect_step(*rolling, host, "run");
    cluster.daemon.kill();
    cluster.daemon.start();
  }
  const Outcome outcome = rolling->finish();
  CAPTURE(outcome.err);
  CHECK(outcome.status == 0);
  std::vector<std::string> hosts;
  for (int i = 0; i < 8; ++i) hosts.push_back(fmt::format("test{}", i));
  CHECK(work.worked() == once(hosts));
  CHECK(work.drained().empty());
}

TEST_CASE("on a terminal one line shows where the work is, and is gone in the end") {
  Cluster cluster;
  const Work work(cluster);
  const std::string gate = (cluster.dir / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  AtTerminal terminal(cluster.daemon.uri(), work.arguments({"--max", "1", "--assume-idle", "test[0-1]"},
                                                           fmt::format("read line < {}", gate)));
  terminal.expect("test0: idle, the command runs\r\n0 of 2 done; run test0");
  std::ofstream(gate) << "go\n";
  terminal.expect("\r\x1b[Ktest0: done\r\n1 of 2 done");
  terminal.expect("1 of 2 done; run test1");
  std::ofstream(gate) << "go\n";
  CHECK(terminal.finish() == 0);
  CHECK(terminal.shown().ends_with("\r\x1b[Ktest1: done\r\n2 of 2 done\r\x1b[Kdone: 2 nodes\r\n"));
}

/// An agent that reports this boot of its node, or none if it is empty.
class BootedAgent {
 public:
  BootedAgent(const std::string& uri, const std::string& host, const std::string& boot) : client_(uri) {
    json report = e2e::hello(host);
    if (!boot.empty()) report["boot-id"] = boot;
    stream_ = client_.send("resource.agent", report, wire::flag_streaming);
    REQUIRE(client_.receive(stream_).errnum == 0);
  }
  /// Ends the agent with a farewell, and waits until the target is offline.
  void end(const std::string& uri, const std::string& target) {
    EventFollower events(uri);
    client_.send("resource.agent-cancel", {{"matchtag", stream_}});
    while (events.expect("offline")["context"]["idset"] != target) {
    }
  }

 private:
  RawClient client_;
  std::uint32_t stream_ = 0;
};

TEST_CASE("with --reboot a node is ready once its agent reports another boot, however it restarts") {
  Watched watched(three_nodes());
  const std::string uri = watched.daemon.uri();
  BootedAgent first(uri, "n0", "a0");
  const BootedAgent other(uri, "n1", "b0");
  WatchingScheduler scheduler(uri);
  scheduler.until_up({0, 1});
  const Work work(watched);
  const std::vector<std::string> options{"--max", "1", "--json", "--assume-idle", "--reboot", "n[0-1]"};
  const auto killed = watched.ctl.start(work.arguments(options));
  expect_step(*killed, "n0", "offline");
  killed->kill();
  // The agent restarts with the same boot.
  first.end(uri, "0");
  const BootedAgent again(uri, "n0", "a0");
  auto bounded = work.arguments(options);
  bounded.insert(bounded.begin() + 1, {"--timeout", "1s"});
  const Outcome failed = watched.ctl.run(bounded);
  CHECK(failed.status == 1);
  CHECK(failed.err.find("n0: not rebooted after 1s;") != std::string::npos);

  const auto rolling = watched.ctl.start(work.arguments(options));
  expect_step(*rolling, "n0", "offline");
  // The reboot is so fast that the daemon does not see the node offline.
  const BootedAgent booted(uri, "n0", "a1");
  expect_step(*rolling, "n0", "ready");
  expect_step(*rolling, "n0", "done");
  expect_step(*rolling, "n1", "offline");
  const BootedAgent last(uri, "n1", "b1");
  expect_step(*rolling, "n1", "done");
  CHECK(rolling->finish().status == 0);
  CHECK(work.worked() == std::map<std::string, int>{{"n0", 2}, {"n1", 1}});
}

TEST_CASE("with --reboot a node whose agent reports no boot is ready after it was offline") {
  Watched watched(three_nodes());
  const std::string uri = watched.daemon.uri();
  std::vector<std::unique_ptr<BootedAgent>> agents;
  for (const char* host : {"n0", "n1"}) agents.push_back(std::make_unique<BootedAgent>(uri, host, ""));
  WatchingScheduler scheduler(uri);
  scheduler.until_up({0, 1});
  const Work work(watched);
  const auto arguments = work.arguments({"--max", "1", "--json", "--assume-idle", "--reboot", "n[0-1]"});
  auto rolling = watched.ctl.start(arguments);
  for (std::size_t node = 0; node < 2; ++node) {
    const std::string host = fmt::format("n{}", node);
    CAPTURE(host);
    expect_step(*rolling, host, "offline");
    // The second node reboots while no run is waiting for it.
    if (node == 1) rolling->kill();
    agents[node]->end(uri, std::to_string(node));
    if (node == 1) rolling = watched.ctl.start(arguments);
    expect_step(*rolling, host, "ready");
    agents[node] = std::make_unique<BootedAgent>(uri, host, "");
    expect_step(*rolling, host, "done");
  }
  CHECK(rolling->finish().status == 0);
  CHECK(work.worked() == once({"n0", "n1"}));
}

TEST_CASE("a budget is a share of the nodes of the work, or of those with each property") {
  Cluster cluster;
  const Work work(cluster);
  cluster.ctl.done({"property", "add", "rack1", "test[0-3]"});
  cluster.ctl.done({"property", "add", "rack2", "test[4-7]"});
  const std::string worked = work.worked_file().string();
  const std::string signs = (cluster.dir / "signs").string();
  // Each command waits until as many nodes of each half have begun as the budget allows.
  const auto most_at_once = [&](std::vector<std::string> options, int first_half, int second_half) {
    options.emplace_back("test[0-7]");
    const std::string script = fmt::format(
        "echo + >> {0}; until test $(grep -c 'test[0-3]' {1}) -ge {2} && test $(grep -c 'test[4-7]' {1}) -ge "
        "{3}; do :; done; echo - >> {0}",
        signs, worked, first_half, second_half);
    CHECK(cluster.ctl.run(work.arguments(options, script)).status == 0);
    CHECK(work.worked().size() == 8);
    int most = 0;
    int running = 0;
    for (const char sign : read_file(signs)) {
      if (sign != '\n') running += sign == '+' ? 1 : -1;
      most = std::max(most, running);
    }
    for (const std::string& file : {worked, signs}) std::filesystem::remove(file);
    return most;
  };
  CHECK(most_at_once({"--assume-idle", "--max", "25%"}, 2, 0) == 2);
  CHECK(most_at_once({"--assume-idle", "--max", "50%", "--by", "rack*"}, 2, 2) == 4);
}

TEST_CASE("rolling keeps what is scheduled for its nodes") {
  Cluster cluster;
  const Work work(cluster);
  REQUIRE(cluster.ctl.run({"drain", "--from", "+24h", "test0", "pdu"}).status == 0);
  const std::string scheduled = cluster.ctl.output({"drain", "--scheduled"});
  REQUIRE(scheduled.find("pdu") != std::string::npos);
  CHECK(cluster.ctl.run(work.arguments({"--max", "1", "--assume-idle", "test0"})).status == 0);
  CHECK(work.drained().empty());
  CHECK(cluster.ctl.output({"drain", "--scheduled"}) == scheduled);
}

TEST_CASE("a scheduled drain whose time comes while rolling works on the node begins when that is done") {
  Cluster cluster;
  const Work work(cluster);
  const std::string gate = (cluster.dir / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const auto arguments =
      work.arguments({"--max", "1", "--json", "--assume-idle", "test0"}, fmt::format("read line < {}", gate));
  const auto rolling = cluster.ctl.start(arguments);
  expect_step(*rolling, "test0", "run");
  // A free node has the same schedule, and shows when its time has come.
  EventFollower events(cluster.daemon.uri());
  REQUIRE(cluster.ctl.run({"drain", "--from", "+100ms", "test[0,7]", "pdu"}).status == 0);
  while (events.expect("drain")["context"].value("reason", "") != "pdu") {
  }
  std::ofstream(gate) << "go\n";
  CHECK(expect_step(*rolling, "test0", "done")["why"] == "left drained: pdu");
  CHECK(rolling->finish().status == 0);
  const json status = cluster.status();
  CHECK(drained_ranks(status) == std::set<unsigned>{0, 7});
  CHECK(work.drained().find("rolling") == std::string::npos);
  CHECK_FALSE(status.contains("scheduled"));
}

TEST_CASE("an operator's drain of a node that fails keeps its reason, and is never ended") {
  Cluster cluster;
  const Work work(cluster);
  const std::string gate = (cluster.dir / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const auto arguments = work.arguments({"--max", "1", "--json", "--assume-idle", "test0"},
                                        fmt::format("read line < {}; test -e {}.ok", gate, gate));
  const auto rolling = cluster.ctl.start(arguments);
  expect_step(*rolling, "test0", "run");
  REQUIRE(cluster.ctl.run({"drain", "-f", "test0", "bad PSU"}).status == 0);
  std::ofstream(gate) << "go\n";
  expect_step(*rolling, "test0", "failed");
  CHECK(rolling->finish().status == 1);
  CHECK(work.drained() == "test0 bad PSU\n");
  CHECK(cluster.ctl.output(arguments).find("drained already: bad PSU") != std::string::npos);
  CHECK(work.drained() == "test0 bad PSU\n");
  CHECK(work.worked() == once({"test0"}));
}

TEST_CASE("the timeout also holds for a node that an earlier run has left before it went offline") {
  Cluster cluster;
  const Work work(cluster);
  auto arguments = work.arguments({"--max", "1", "--json", "--assume-idle", "--reboot", "test0"});
  const auto rolling = cluster.ctl.start(arguments);
  expect_step(*rolling, "test0", "offline");
  rolling->kill();
  arguments.insert(arguments.begin() + 1, {"--timeout", "100ms"});
  const Outcome failed = cluster.ctl.run(arguments);
  CHECK(failed.status == 1);
  CHECK(failed.err.find("test0: not rebooted after 100ms;") != std::string::npos);
  CHECK(work.drained() == "test0 rolling: not rebooted after 100ms\n");
  CHECK(work.worked() == once({"test0"}));
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

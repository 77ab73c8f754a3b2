// resourcectl drain --wait and --dry-run: the end when the last allocation is freed, also over a kill of the
// daemon, and the output when that does not happen.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fixture.hpp"
#include "harness/other_user.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

/// A scheduler that keeps the ledger, for test[0-7].
struct LedgerScheduler {
  explicit LedgerScheduler(const std::string& uri) : client(uri) {
    const std::uint32_t stream =
        client.send("resource.acquire", {{"allocations", true}}, wire::flag_streaming);
    first = client.receive(stream).json();
  }
  void alloc(const std::string& id, const std::string& ranks, const std::string& cores = "0-1",
             const json& expiration = nullptr) {
    const json entry{{"rank", ranks}, {"children", {{"core", cores}}}};
    const json execution{{"R_lite", json::array({entry})},
                         {"nodelist", json::array({fmt::format("test[{}]", ranks)})},
                         {"starttime", 0},
                         {"expiration", 0}};
    REQUIRE(
        client
            .call("resource.alloc",
                  {{"id", id}, {"R", {{"version", 1}, {"execution", execution}}}, {"expiration", expiration}})
            .errnum == 0);
  }
  void free(const std::string& id) { REQUIRE(client.call("resource.free", {{"id", id}}).errnum == 0); }

  RawClient client;
  json first;
};

/// The number of requests of this topic that were answered without an error.
int answered(Cluster& cluster, const std::string& topic) {
  const json requests = cluster.operator_client.call("resource.stats-get").json()["requests"];
  return requests.contains(topic) ? requests[topic]["succeeded"].get<int>() : 0;
}

TEST_SUITE_BEGIN("drain_wait");

TEST_CASE("drain --wait ends when the last allocation on its targets is freed") {
  Cluster cluster;
  LedgerScheduler scheduler(cluster.daemon.uri());
  scheduler.alloc("j1", "0-1");
  scheduler.alloc("j2", "1", "2-3");
  scheduler.alloc("j3", "5");
  const auto drain = cluster.ctl.start({"drain", "--wait", "test[1-2]", "fan"});
  CHECK(drain->expect_line() == "drained 2 nodes: test[1-2] (fan)");
  CHECK(drained_ranks(cluster.status()) == ids("1-2"));
  scheduler.free("j1");
  // The first wait is the question before the drain whether the command can wait.
  CHECK(answered(cluster, "resource.wait") == 1);
  scheduler.free("j2");
  CHECK(drain->expect_line() == "idle: 2 nodes: test[1-2]");
  CHECK(drain->wait() == 0);
  CHECK(answered(cluster, "resource.wait") == 2);
  CHECK(drained_ranks(cluster.status()) == ids("1-2"));
  // If there is nothing to wait for, the command ends at once; with --json it prints one object on each line.
  CHECK(cluster.ctl.output({"drain", "--wait", "--json", "6"}) ==
        "{\"change\":\"drain\",\"nnodes\":1,\"ranks\":\"6\",\"nodelist\":\"test6\"}\n"
        "{\"wait\":\"idle\",\"nnodes\":1,\"ranks\":\"6\",\"nodelist\":\"test6\"}\n");
  CHECK(cluster.ctl.output({"drain", "--wait", "--quiet", "7"}).empty());
}

TEST_CASE("drain --wait fails if a target was undrained meanwhile, as that may get new work") {
  Cluster cluster;
  LedgerScheduler scheduler(cluster.daemon.uri());
  scheduler.alloc("j1", "1");
  const auto drain = cluster.ctl.start({"drain", "--wait", "test[1-2]", "fan"});
  CHECK(drain->expect_line() == "drained 2 nodes: test[1-2] (fan)");
  for (const Deadline deadline; answered(cluster, "resource.allocations") == 0;) REQUIRE(!deadline.passed());
  cluster.undrain("1");
  scheduler.free("j1");
  const Outcome outcome = drain->finish();
  CHECK(outcome.status == 1);
  CHECK(outcome.err == "resourcectl: idle, but not drained any more: test1\n");
}

TEST_CASE(
    "drain --wait says once of each allocation that it has expired, also if that comes while it waits") {
  Cluster cluster;
  LedgerScheduler scheduler(cluster.daemon.uri());
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  };
  constexpr double soon = 0.5;
  constexpr double long_ago = 310;
  scheduler.alloc("j1", "0-2", "0", now() - long_ago);
  scheduler.alloc("j2", "1", "1", now() + soon);
  scheduler.alloc("j3", "1", "2");
  scheduler.alloc("j4", "1", "3", now() + long_ago);
  const auto drain = cluster.ctl.start({"drain", "--wait", "test[1-2]"});
  // The command gets this answer before that of its wait.
  for (const Deadline deadline; answered(cluster, "resource.allocations") == 0;) REQUIRE(!deadline.passed());
  const auto as_json = cluster.ctl.start({"drain", "--wait", "-f", "--json", "test[1-2]"});
  CHECK(json::parse(as_json->expect_line())["change"] == "drain");
  json told = json::parse(as_json->expect_line());
  CHECK(told["expired"]["expiration"].is_number());
  told["expired"].erase("expiration");
  CHECK(told ==
        json::parse(R"({"wait":"allocated","expired":{"id":"j1","partition":"","nodelist":"test[1-2]"}})"));
  CHECK(json::parse(as_json->expect_line())["expired"]["id"] == "j2");
  for (const char* id : {"j1", "j2", "j3", "j4"}) scheduler.free(id);
  CHECK(json::parse(as_json->expect_line())["wait"] == "idle");
  CHECK(as_json->wait() == 0);
  const Outcome outcome = drain->finish();
  CHECK(outcome.status == 0);
  CHECK(outcome.out == "drained 2 nodes: test[1-2]\nidle: 2 nodes: test[1-2]\n");
  CHECK(
      outcome.err.starts_with("resourcectl: waits for j1 on test[1-2], which has expired 5m ago: resourcectl "
                              "free j1 if it is gone\n"));
}

TEST_CASE("drain --wait --timeout says which targets are still allocated, and the drain stays") {
  Cluster cluster;
  LedgerScheduler scheduler(cluster.daemon.uri());
  scheduler.alloc("j1", "0-1");
  scheduler.alloc("j2", "1", "2-3");
  const Outcome late = cluster.ctl.run({"drain", "--wait", "--timeout", "20ms", "test[1-2]"});
  CHECK(late.status == 1);
  CHECK(late.err == "resourcectl: still allocated after 20ms: test1 (j1), test1 (j2)\n");
  CHECK(drained_ranks(cluster.status()) == ids("1-2"));
  const auto drain = cluster.ctl.start({"drain", "--wait", "-f", "test1", "fan"});
  CHECK(drain->expect_line() == "drained 1 node: test1 (fan)");
  drain->signal(SIGINT);
  const Outcome interrupted = drain->finish();
  // The signal may come before the command waits, which then ends without a word.
  if (!interrupted.err.empty())
    CHECK(
        interrupted.err ==
        "resourcectl: still allocated when interrupted: test1 (j1), test1 (j2); the drain stays in force\n");
  CHECK(interrupted.status == 128 + SIGINT);
  CHECK(drained_ranks(cluster.status()) == ids("1-2"));
  CHECK(cluster.ctl.run({"drain", "--wait", "--timeout", "soon", "5"}).status == 2);
  CHECK(cluster.ctl.run({"drain", "--timeout", "1s", "5"}).status == 2);
  CHECK(cluster.ctl.run({"drain", "--wait"}).status == 2);
}

TEST_CASE("drain --wait goes on over kill -9 of the daemon, until the scheduler is back and has freed") {
  Cluster cluster;
  auto scheduler = std::make_unique<LedgerScheduler>(cluster.daemon.uri());
  scheduler->alloc("j1", "3");
  const auto drain = cluster.ctl.start({"drain", "--wait", "test3"});
  CHECK(drain->expect_line() == "drained 1 node: test3");
  for (int kill = 0; kill < 3; ++kill) {
    // By now the daemon has the request of the wait, or the command sends it again.
    {
      RawClient client(cluster.daemon.uri());
      for (int i = 0; i < 20; ++i) client.call("resource.ping", json::object());
    }
    scheduler.reset();
    cluster.daemon.kill();
    cluster.daemon.start();
    CHECK(cluster.ctl.output({"drain", "-n", "-o", "{state} {nodelist}"}) == "draining test3\n");
    scheduler = std::make_unique<LedgerScheduler>(cluster.daemon.uri());
    REQUIRE(scheduler->first["allocations"].size() == 1);
  }
  scheduler->free("j1");
  CHECK(drain->expect_line() == "idle: 1 node: test3");
  CHECK(drain->wait() == 0);
}

TEST_CASE("drain --wait where nobody reports what runs") {
  Cluster cluster;
  const auto refused = [&](const std::string& targets) {
    const Outcome outcome = cluster.ctl.run({"drain", "-f", "--wait", targets});
    CHECK(outcome.status == 1);
    return outcome.err;
  };
  CHECK(refused("test[0-1]") == "resourcectl: nobody reports what runs on test[0-1]\n");
  CHECK(drained_ranks(cluster.status()) == ids("0-1"));
  // This scheduler knows only RFC 28, so it does not report what runs.
  const Scheduler silent(cluster.daemon.uri());
  CHECK(refused("test7") == "resourcectl: nobody reports what runs on test7\n");
  CHECK(cluster.ctl.output({"drain", "-f", "--wait", "--assume-idle", "test[0-1]"}) ==
        "drained 2 nodes: test[0-1]\nidle: 2 nodes: test[0-1]\n");
}

TEST_CASE(
    "drain --dry-run shows what would be drained, what runs there and what is left, and changes nothing") {
  Cluster cluster(
      "[resource]\nexclude = \"7\"\n"
      "[[resource.config]]\nhosts = \"test[0-7]\"\ncores = \"0-3\"\n"
      "[[resource.config]]\nhosts = \"test[0-1]\"\ngpus = \"0\"\nproperties = [\"gpu\"]\n");
  LedgerScheduler scheduler(cluster.daemon.uri());
  scheduler.alloc("j1", "0-1");
  scheduler.alloc("j2", "4");
  cluster.drain("2", "disk");
  cluster.drain("3", "fan");
  const json before = cluster.status();
  CHECK(cluster.ctl.output({"drain", "--dry-run", "-u", "test[1-2]", "power"}) ==
        "would drain 1 node: test1 (power)\n"
        "drained already: test2 (disk), which is left as it is\n"
        "allocated: j1 on test1\n"
        "LEFT          NODES    CORES   GPUS\n"
        "all          5 -> 4 20 -> 16 2 -> 1\n"
        "property:gpu 2 -> 1   8 -> 4 2 -> 1\n");
  const Outcome refused = cluster.ctl.run({"drain", "--dry-run", "2-4,7"});
  CHECK(refused.status == 1);
  CHECK(refused.out ==
        "would drain 2 nodes: test[4,7]\n"
        "drained already: test2 (disk), which refuses the drain\n"
        "drained already: test3 (fan), which refuses the drain\n"
        "excluded: test7, which refuses the drain\n"
        "allocated: j2 on test4\n"
        "LEFT          NODES    CORES   GPUS\n"
        "all          5 -> 4 20 -> 16 2 -> 2\n"
        "property:gpu 2 -> 2   8 -> 8 2 -> 2\n");
  CHECK(refused.err ==
        "resourcectl: the drain would be refused: it names excluded targets, or drained ones without -f or "
        "-u\n");
  const json shown = json::parse(cluster.ctl.output({"drain", "--dry-run", "-f", "--json", "2,4", "power"}));
  CHECK(shown == json::parse(R"({"change": "drain", "dry_run": true, "refused": false, "nnodes": 2,
    "ranks": "2,4", "nodelist": "test[2,4]", "reason": "power",
    "drained": [{"nodelist": "test2", "reason": "disk", "then": "gets the new reason"}], "excluded": "",
    "allocations": [{"id": "j2", "partition": "", "nodelist": "test4"}],
    "left": [{"set": "all", "now": {"nodes": 5, "cores": 20, "gpus": 2},
              "after": {"nodes": 4, "cores": 16, "gpus": 2}},
             {"set": "property:gpu", "now": {"nodes": 2, "cores": 8, "gpus": 2},
              "after": {"nodes": 2, "cores": 8, "gpus": 2}}]})"));
  CHECK(cluster.status() == before);
}

TEST_CASE("every user may see what a drain would do") {
  if (!can_be_other_users()) return;
  constexpr unsigned someone = 61001;
  const TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  const std::string local = "local://" + (dir / "local").string();
  const Daemon daemon(dir, {.listen = {"ipc://" + (dir / "bus").string(), local}});
  const OtherUser user(someone);
  CHECK(Ctl(local).output({"drain", "--dry-run", "test0"}) ==
        "would drain 1 node: test0\nLEFT  NODES    CORES   GPUS\nall  8 -> 7 32 -> 28 0 -> 0\n");
  CHECK(Ctl(local).run({"drain", "test0"}).status == 1);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

// Changes by resourcectl: what they print, which targets they name, and which ones they refuse.
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.hpp"
#include "harness/terminal.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

/// The targets 0-1 are fast, 6-7 are excluded, 0-2 and 3-5 are partitions.
const std::string divided =
    "[resource]\nexclude = \"6-7\"\n"
    "[[acquire.partition]]\nname = \"batch\"\ntargets = \"test[0-2]\"\n"
    "[[acquire.partition]]\nname = \"debug\"\ntargets = \"test[3-5]\"\n"
    "[[resource.config]]\nhosts = \"test[0-7]\"\ncores = \"0-3\"\n"
    "[[resource.config]]\nhosts = \"test[0-1]\"\nproperties = [\"fast\"]\n";

TEST_SUITE_BEGIN("changes");

TEST_CASE("-q selects the targets of a queue in listings and changes") {
  const std::string config =
      "[[resource.config]]\nhosts = \"n[0-7]\"\ncores = \"0-3\"\n"
      "[[resource.config]]\nhosts = \"n[0-3]\"\nproperties = [\"gpu\"]\n"
      "[queues.batch]\nhosts = \"n[4-7]\"\n[queues.gpus]\nrequires = [\"gpu\"]\n"
      "[queues.virtual]\nparent = \"gpus\"\n[queues.every]\n[queues.others]\nrequires = [\"^gpu\"]\n";
  const Cluster cluster{DaemonOptions{.config = config}};
  const auto ctl = [&](const std::vector<std::string>& words) { return cluster.ctl.output(words); };
  for (const auto& [queue, hosts] : std::vector<std::pair<std::string, std::string>>{{"batch", "n[4-7]"},
                                                                                     {"gpus", "n[0-3]"},
                                                                                     {"virtual", "n[0-3]"},
                                                                                     {"every", "n[0-7]"},
                                                                                     {"others", "n[4-7]"}}) {
    CAPTURE(queue);
    CHECK(ctl({"status", "-n", "-q", queue, "-o", "{nodelist}"}) == hosts + "\n");
    CHECK(ctl({"list", "-n", "-q", queue, "-s", "up", "-o", "{nodelist}"}) == hosts + "\n");
    CHECK(ctl({"info", "--queue", queue}).starts_with(queue == "every" ? "8 Nodes" : "4 Nodes"));
  }
  // Several queues are their union, with commas or as several options; a queue within another adds nothing.
  for (const auto& words : std::vector<std::vector<std::string>>{{"-q", "batch,gpus"},
                                                                 {"-q", "gpus", "-q", "batch"},
                                                                 {"-q", "every,gpus"},
                                                                 {"-q", "gpus,gpus,others"}}) {
    CAPTURE(words);
    std::vector<std::string> status{"status", "-n", "-o", "{nodelist}"};
    status.insert(status.end(), words.begin(), words.end());
    CHECK(ctl(status) == "n[0-7]\n");
  }
  CHECK(ctl({"list", "-n", "-q", "virtual,gpus", "-s", "up", "-o", "{nodelist}"}) == "n[0-3]\n");
  CHECK(ctl({"drain", "-q", "batch", "all", "power"}) == "drained 4 nodes: n[4-7] (power)\n");
  CHECK(ctl({"drain", "-n", "-q", "gpus", "-o", "{nodelist}"}).empty());
  CHECK(ctl({"drain", "-n", "-q", "batch", "-o", "{nodelist}"}) == "n[4-7]\n");
  CHECK(ctl({"undrain", "-q", "batch", "4-5"}) == "undrained 2 nodes: n[4-5]\n");
  CHECK(ctl({"property", "add", "-q", "gpus", "slow", "all"}) == "added property slow to 4 nodes: n[0-3]\n");
  CHECK(ctl({"property", "list", "-n", "-q", "gpus", "-o", "{property}"}) == "gpu\nslow\n");
  CHECK(ctl({"eventlog", "-q", "gpus", "-n", "1"}).find("property-add") != std::string::npos);
  const auto refusal = [&](const std::vector<std::string>& words) {
    const Outcome outcome = cluster.ctl.run(words);
    CHECK(outcome.status == 1);
    return outcome.err;
  };
  // The empty argument of `drain -q batch "$UNSET"` is refused.
  CHECK(refusal({"drain", "-q", "batch", "", "x"}) == "resourcectl: idset is empty\n");
  CHECK(refusal({"shrink", "-y", "-q", "batch", ""}) == "resourcectl: idset is empty\n");
  CHECK(refusal({"undrain", "-q", "batch", "n1"}) == "resourcectl: no target of n1 is in the queue batch\n");
  CHECK(refusal({"undrain", "-q", "others,batch", "n1"}) ==
        "resourcectl: no target of n1 is in the queues batch,others\n");
  CHECK(refusal({"list", "-q", "batch,"}) ==
        "resourcectl: unknown queue \"\": known are batch, every, gpus, others, virtual\n");
  CHECK(refusal({"drain", "-q", "nosuch,batch", "n1"}) ==
        "resourcectl: unknown queue \"nosuch\": known are batch, every, gpus, others, virtual\n");
  CHECK(refusal({"drain", "-q", "nosuch", "n1"}) ==
        "resourcectl: unknown queue \"nosuch\": known are batch, every, gpus, others, virtual\n");
}

TEST_CASE("the scheduler's view leaves out excluded targets, however they are named") {
  const Cluster cluster{DaemonOptions{.config = "[resource]\nexclude = \"n[2-3]\"\n[[resource.config]]\n"
                                                "hosts = \"n[0-3]\"\ncores = \"0-3\"\n[queues.batch]\n"
                                                "hosts = \"n[1-2]\"\n[queues.out]\nhosts = \"n3\"\n"}};
  const auto hosts = [&](const std::vector<std::string>& words) {
    std::vector<std::string> command = {"list", "-n", "-s", "all", "-o", "{nodelist}"};
    command.insert(command.end(), words.begin(), words.end());
    std::string listed;
    for (const char c : cluster.ctl.output(command)) listed += c == '\n' ? ' ' : c;
    return listed.substr(0, listed.find_last_not_of(' ') + 1);
  };
  CHECK(hosts({"-q", "batch"}).ends_with("n1"));
  CHECK(hosts({"-q", "out"}).empty());
  CHECK(hosts({"-i", "n[0,2-3]"}).ends_with("n0"));
  CHECK(hosts({"-i", "2"}).empty());
  CHECK(cluster.ctl.output({"info", "-q", "batch"}) == "1 Nodes, 4 Cores, 0 GPUs\n");
  const json shown = json::parse(cluster.ctl.output({"R", "show", "-q", "batch"}));
  CHECK(shown["execution"]["nodelist"] == json::array({"n1"}));
  for (const char* command : {"list", "status", "drain"}) {
    const Outcome other = cluster.ctl.run({command, "-n", "-o", "{nodelist}", "-i", "n[1,9]"});
    CHECK(other.err == "resourcectl: unknown host: n9\n");
    CHECK(other.status == 0);
  }
  CHECK(hosts({"-i", "n[1,9]"}).ends_with("n1"));
  CHECK(cluster.ctl.run({"status", "-i", "1,9"}).err == "resourcectl: unknown ranks: 9\n");
}

TEST_CASE("-q selects targets also where hosts have numbers for names") {
  const Cluster cluster{DaemonOptions{.config = "[[resource.config]]\nhosts = \"[0001-0008]\"\ncores = "
                                                "\"0-3\"\n[queues.batch]\nhosts = \"[0005-0008]\"\n"}};
  CHECK(cluster.ctl.output({"drain", "-q", "batch", "all", "power"}) ==
        "drained 4 nodes: [0005-0008] (power)\n");
  CHECK(cluster.ctl.output({"status", "-n", "-q", "batch", "-o", "{ranks}"}) == "4-7\n");
  CHECK(cluster.ctl.output({"undrain", "-q", "batch", "rank:4-5"}) == "undrained 2 nodes: [0005-0006]\n");
}

TEST_CASE("a change prints what it did") {
  Cluster cluster;
  const auto ctl = [&](const std::vector<std::string>& arguments) { return cluster.ctl.output(arguments); };
  CHECK(ctl({"drain", "2-3", "bad", "memory"}) == "drained 2 nodes: test[2-3] (bad memory)\n");
  CHECK(ctl({"drain", "-u", "test[3-4]", "fan"}) == "drained 1 node: test4 (fan); test3 drained already\n");
  CHECK(ctl({"drain", "-n", "-o", "{ranks} {reason}"}) == "2-3 bad memory\n4 fan\n");
  CHECK(ctl({"undrain", "-f", "4-5"}) == "undrained 1 node: test4; test5 not drained\n");
  CHECK(json::parse(ctl({"undrain", "--json", "2", "repaired"})) == json{{"change", "undrain"},
                                                                         {"nnodes", 1},
                                                                         {"ranks", "2"},
                                                                         {"nodelist", "test2"},
                                                                         {"reason", "repaired"}});
  CHECK(ctl({"undrain", "--quiet", "3"}).empty());
  CHECK(cluster.status()["drain"].empty());
  CHECK(ctl({"property", "add", "fast", "0-1"}) == "added property fast to 2 nodes: test[0-1]\n");
  CHECK(ctl({"property", "remove", "fast", "test1"}) == "removed property fast from 1 node: test1\n");
  CHECK(ctl({"expiration", "set", "+1h"}).starts_with("set the expiration to 20"));
  CHECK(ctl({"expiration", "set", "0"}) == "removed the expiration\n");
  CHECK(ctl({"reload"}) == "reloaded the configuration\n");
  CHECK(ctl({"shrink", "7"}) == "removed 1 node: test7\n");
  CHECK(ctl({"info"}) == "7 Nodes, 28 Cores, 0 GPUs\n");
}

TEST_CASE("an error names hosts, and all that are unknown") {
  Cluster cluster(divided);
  const auto refusal = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = cluster.ctl.run(arguments);
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK(refusal({"undrain", "5"}) == "resourcectl: rank 5 not drained (test5): use -f to skip it\n");
  CHECK(refusal({"undrain", "--quiet", "0,4-5"}) ==
        "resourcectl: ranks 0,4-5 not drained (test[0,4-5]): use -f to skip them\n");
  CHECK(refusal({"drain", "4,6-7"}) == "resourcectl: ranks 6-7 excluded (test[6-7])\n");
  CHECK(refusal({"drain", "test1,nosuch1,nosuch2,test2"}) == "resourcectl: unknown hosts: nosuch[1-2]\n");
  CHECK(refusal({"drain", "nosuch1"}) == "resourcectl: unknown host: nosuch1\n");
  CHECK(cluster.status()["drain"].empty());
}

TEST_CASE("a reason that begins with a host is refused unless -- is before it") {
  Cluster cluster;
  const Outcome refused = cluster.ctl.run({"drain", "test1", "test2"});
  CHECK(refused.status == 1);
  CHECK(refused.out.empty());
  CHECK(
      refused.err ==
      "resourcectl: the reason begins with test2, which is a host: separate targets by commas (test1,test2), "
      "or write -- before the reason\n");
  CHECK(cluster.status()["drain"].empty());
  CHECK(cluster.ctl.output({"drain", "test1", "--", "test2", "burns"}) ==
        "drained 1 node: test1 (test2 burns)\n");
  CHECK(cluster.ctl.run({"undrain", "test1", "test2"}).status == 1);
  CHECK(cluster.status()["drain"]["1"]["reason"] == "test2 burns");
}

TEST_CASE("targets by property and by partition, and all of them") {
  Cluster cluster(divided);
  const auto ctl = [&](const std::vector<std::string>& arguments) { return cluster.ctl.output(arguments); };
  CHECK(ctl({"drain", "property:fast,partition:debug", "power"}) ==
        "drained 5 nodes: test[0-1,3-5] (power)\n");
  CHECK(ctl({"undrain", "partition:debug,0"}) == "undrained 4 nodes: test[0,3-5]\n");
  // 6 and 7 are excluded, so they cannot be drained.
  CHECK(ctl({"drain", "-u", "all", "power"}) ==
        "drained 5 nodes: test[0,2-5] (power); test1 drained already\n");
  CHECK(ctl({"undrain", "all"}) == "undrained 6 nodes: test[0-5]\n");
  CHECK(ctl({"property", "add", "here", "all"}) == "added property here to 8 nodes: test[0-7]\n");
  const auto refusal = [&](const std::string& targets) {
    const Outcome outcome = cluster.ctl.run({"undrain", targets});
    CHECK(outcome.status == 1);
    return outcome.err;
  };
  CHECK(refusal("property:fat") == "resourcectl: unknown property \"fat\": known are fast, here\n");
  // An import drains all nodes or none.
  const TempDir dir;
  const std::string drains =
      dir.write("drains", "test2|drained|root|now|disk\ntest[5-6]|down|root|now|fan\n");
  const Outcome import = cluster.ctl.run({"slurm", "import-drains", drains});
  CHECK(import.status == 1);
  CHECK(import.err ==
        "resourcectl: " + drains + ":2: excluded here, and cannot be drained: test6; leave it out\n");
  CHECK(drained_ranks(cluster.status()).empty());
  CHECK(refusal("partition:fat") == "resourcectl: unknown partition \"fat\": known are batch, debug\n");
}

TEST_CASE("shrink of several nodes is confirmed") {
  Cluster cluster;
  const auto info = [&] { return cluster.ctl.output({"info"}); };
  const std::string before = info();
  const Outcome refused = cluster.ctl.run({"shrink", "2-3"});
  CHECK(refused.status == 1);
  CHECK(refused.err == "resourcectl: shrink removes 2 nodes: test[2-3] for good: confirm with --yes\n");
  for (const char* answer : {"n\n", "\n", "\x04"}) {
    AtTerminal terminal(cluster.daemon.uri(), {"shrink", "2-3"});
    terminal.expect("Remove 2 nodes: test[2-3] for good? [y/N] ");
    terminal.type(answer);
    CHECK(terminal.finish() == 1);
    CHECK(terminal.shown().find("resourcectl: not confirmed: nothing is removed") != std::string::npos);
    CHECK(info() == before);
  }
  AtTerminal terminal(cluster.daemon.uri(), {"shrink", "2-3"});
  terminal.expect("Remove 2 nodes: test[2-3] for good? [y/N] ");
  terminal.type("y\n");
  CHECK(terminal.finish() == 0);
  CHECK(terminal.shown().ends_with("removed 2 nodes: test[2-3]\r\n"));
  CHECK(cluster.ctl.output({"shrink", "--yes", "4-5"}) == "removed 2 nodes: test[4-5]\n");
  AtTerminal single(cluster.daemon.uri(), {"shrink", "6"});
  CHECK(single.finish() == 0);
  CHECK(info() == "3 Nodes, 12 Cores, 0 GPUs\n");
}

TEST_CASE("targets that shrink removed are listed, until an R that has them is loaded") {
  Cluster cluster;
  const auto shrunk = [&] {
    return cluster.ctl.output({"status", "-n", "-s", "shrunk", "-o", "{nnodes} {nodelist}"});
  };
  const std::string all = cluster.ctl.output({"R", "show"});
  CHECK(shrunk() == "0\n");
  CHECK_FALSE(cluster.status().contains("shrunk"));
  cluster.ctl.done({"shrink", "--yes", "2-3"});
  cluster.ctl.done({"shrink", "test5"});
  CHECK(shrunk() == "3 test[2-3,5]\n");
  CHECK(cluster.status()["shrunk"] == "test[2-3,5]");
  const Outcome some =
      cluster.ctl.run({"status", "-n", "-s", "shrunk", "-i", "test[3-5],test9", "-o", "{nodelist}"});
  CHECK(some.status == 0);
  CHECK(some.out == "test[3,5]\n");
  CHECK(some.err == "resourcectl: unknown host: test9\n");
  // Ranks name targets of the inventory alone.
  CHECK(cluster.ctl.output({"status", "-n", "-s", "shrunk", "-i", "4", "-o", "{nnodes}"}) == "0\n");
  cluster.ctl.done({"reload"});
  CHECK(shrunk() == "3 test[2-3,5]\n");
  cluster.daemon.kill();
  cluster.daemon.start();
  CHECK(cluster.ctl.output({"status", "-n", "-s", "shrunk,offline", "-o", "{state} {nodelist}"}) ==
        "offline\nshrunk test[2-3,5]\n");
  cluster.ctl.done({"reload", cluster.dir.write("R.json", all)});
  CHECK(shrunk() == "0\n");
  CHECK(cluster.ctl.output({"info"}) == "8 Nodes, 32 Cores, 0 GPUs\n");
}

TEST_CASE("shrink names the allocations on what it removes, and asks then for one node too") {
  Cluster cluster;
  RawClient scheduler(cluster.daemon.uri());
  const auto stream = scheduler.send("resource.acquire", {{"allocations", true}}, wire::flag_streaming);
  REQUIRE(scheduler.receive(stream).errnum == 0);
  const json r = json::parse(
      R"({"version":1,"execution":{"R_lite":[{"rank":"2","children":{"core":"0"}}],"nodelist":["test2"]}})");
  for (const char* id : {"j1", "j2"}) {
    json part = r;
    part["execution"]["R_lite"][0]["children"]["core"] = id[1] == '1' ? "0" : "1";
    REQUIRE(scheduler.call("resource.alloc", {{"id", id}, {"R", part}}).errnum == 0);
  }
  CHECK(cluster.ctl.run({"shrink", "test2"}).err ==
        "resourcectl: shrink removes 1 node: test2 for good, with 2 allocations (j1, j2): confirm with "
        "--yes\n");
  CHECK(cluster.ctl.output({"shrink", "--dry-run", "test[2-3]"}) ==
        "would remove 2 nodes: test[2-3], with 2 allocations (j1, j2)\n");
  CHECK(cluster.ctl.output({"info"}).starts_with("8 Nodes"));
  CHECK(cluster.ctl.output({"shrink", "--yes", "test2"}) == "removed 1 node: test2\n");
  CHECK(cluster.ctl.output({"shrink", "test3"}) == "removed 1 node: test3\n");
}

TEST_CASE("a target that shrink removed returns by unshrink and a restart, or a reload without schedulers") {
  Cluster cluster;
  cluster.ctl.done({"shrink", "--yes", "2-3"});
  const Outcome present = cluster.ctl.run({"unshrink", "test1"});
  CHECK(present.status == 1);
  CHECK(present.err == "resourcectl: test1 not removed\n");
  CHECK(cluster.ctl.output({"unshrink", "test2"}) ==
        "test2: back with the next reload of the configuration while no scheduler has acquired resources, or "
        "restart\n");
  CHECK(cluster.status()["shrunk"] == "test[2-3]");
  CHECK(cluster.status()["returning"] == "test2");
  CHECK(cluster.ctl.output({"shrink", "--dry-run", "test2"}) == "test2: would not return\n");
  cluster.ctl.done({"unshrink", "--quiet", "test3"});
  CHECK(cluster.ctl.output({"shrink", "test3"}) == "test3: will not return\n");
  CHECK(cluster.status()["returning"] == "test2");
  cluster.daemon.kill();
  cluster.daemon.start();
  CHECK(cluster.ctl.output({"info"}) == "7 Nodes, 28 Cores, 0 GPUs\n");
  CHECK(cluster.status()["online"] == "0-2,4-7");

  {
    const auto scheduler = cluster.ctl.start({"acquire"});
    scheduler->expect_line();
    cluster.ctl.done({"unshrink", "--quiet", "test3"});
    cluster.ctl.done({"reload"});
    CHECK(cluster.ctl.output({"info"}) == "7 Nodes, 28 Cores, 0 GPUs\n");
    until_logged(cluster.daemon, "test3: not returned to the inventory yet");
  }
  cluster.ctl.done({"reload"});
  CHECK(cluster.ctl.output({"info"}) == "8 Nodes, 32 Cores, 0 GPUs\n");
  CHECK(cluster.status()["online"] == "0-7");
}

TEST_CASE("a drain says who did it: in the list, over a restart, and after export and import") {
  Cluster cluster;
  const json me{{"userid", geteuid()}};
  cluster.drain("1-2", "disk");
  const std::string name = cluster.ctl.output({"drain", "-n", "-o", "{user} {by} {ranks}"});
  const passwd* account = getpwuid(geteuid());
  const std::string user = account != nullptr ? account->pw_name : std::to_string(geteuid());
  CHECK(name == fmt::format("{} {} 1-2\n", user, me.dump()));
  CHECK(cluster.ctl.output({"drain"}).find(user) == std::string::npos);
  cluster.daemon.kill();
  cluster.daemon.start();
  CHECK(cluster.ctl.output({"drain", "-n", "-o", "{user} {by} {ranks}"}) == name);
  const json row = json::parse(cluster.ctl.output({"drain", "--json", "-i", "1"}));
  CHECK(row["user"] == user);
  CHECK(row["by"] == me);

  TempDir dir;
  const std::string log = cluster.ctl.output({"eventlog", "--export"});
  CHECK(log.find(R"("by":)" + me.dump()) != std::string::npos);
  REQUIRE(import_log(dir, std::string(eight_nodes), dir.write("log", log)).status == 0);
  const Daemon imported(dir);
  CHECK(Ctl(imported.uri()).output({"drain", "-n", "-o", "{user} {by} {ranks}"}) == name);
}

TEST_CASE("the log has a line for each change, which no reason can forge") {
  Cluster cluster;
  const std::string by = " by " + own_name();
  cluster.drain("1-2", "bad\ndimm");
  cluster.undrain("1");
  cluster.ctl.done({"property", "add", "fast", "3"});
  cluster.ctl.done({"expiration", "set", "4102444800"});
  cluster.ctl.done({"shrink", "7"});
  for (const std::string& line :
       {" info: drain test[1-2]" + by + ": bad dimm\n", " info: undrain test1" + by + "\n",
        " info: property-update test3" + by + "\n", " info: resource-update" + by + "\n",
        " info: shrink test7" + by + "\n"}) {
    until_logged(cluster.daemon, line);
  }
  CHECK(cluster.daemon.log().find("restart") == std::string::npos);
}

TEST_CASE("nobody waits for a reader of the log, and the daemon ends as usual") {
  TempDir dir;
  const std::string log = (dir / "log").string();
  REQUIRE(mkfifo(log.c_str(), S_IRUSR | S_IWUSR) == 0);
  const int unread = open(log.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(unread >= 0);
  REQUIRE(fcntl(unread, F_SETPIPE_SZ, 4096) >= 0);
  Daemon daemon(dir);
  RawClient operator_client(daemon.uri());
  const std::string reason(900, 'x');
  for (int i = 0; i < 100; ++i) {
    const json drain{{"targets", "0"}, {"mode", "update"}, {"reason", reason + std::to_string(i)}};
    REQUIRE(operator_client.call("resource.drain", drain).errnum == 0);
  }
  CHECK(daemon.terminate() == 0);
  close(unread);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

// Health of nodes with the real programs: checks of an agent, or of `resource-agent health` for it, the
// drains that follow, and the end of hanging programs.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/other_user.hpp"
#include "node_agent.hpp"
#include "temp_dir.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;
using resourced::test::TempDir;

TEST_SUITE_BEGIN("health");

const std::string agent_program = RESOURCED_BIN "/resource-agent";

std::string script(const TempDir& dir, const std::string& name, const std::string& text) {
  const std::string path = dir.write(name, "#!/bin/sh\n" + text);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

/// Runs one check and returns its result, which is reported on standard output.
json result_of(const std::string& path, const std::string& timeout = "1m") {
  Process check({agent_program, "health", "--program", path, "--timeout", timeout, "--report-fd", "1"});
  const Outcome outcome = check.finish();
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
  return json::parse(outcome.out);
}

/// Reads lines that programs write to a FIFO.
class PidFifo {
 public:
  explicit PidFifo(const TempDir& dir) : path_(dir.file("fifo")) {
    REQUIRE(::mkfifo(path_.c_str(), 0600) == 0);
    // Opened for reading and writing, so that the reader does not end with the first writer.
    reader_ =
        std::make_unique<Process>(std::vector<std::string>{"/bin/sh", "-c", "exec cat <>\"$0\"", path_});
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  std::string line() { return reader_->expect_line(); }
  std::vector<pid_t> pids(int count) {
    std::vector<pid_t> found;
    for (int i = 0; i < count; ++i) found.push_back(std::stoi(line()));
    return found;
  }
  /// The lines so far, once no program writes any more.
  std::vector<pid_t> pids_so_far() {
    std::ofstream(path_) << "end\n";
    std::vector<pid_t> found;
    for (std::string text = line(); text != "end"; text = line()) found.push_back(std::stoi(text));
    return found;
  }

 private:
  std::string path_;
  std::unique_ptr<Process> reader_;
};

/// A program with a child, and with a grandchild that leaves the session and survives its parent. All of them
/// ignore SIGTERM, write their process ids to a FIFO and hang.
std::string hanging(const TempDir& dir, const std::string& fifo) {
  return script(dir, "hanging",
                fmt::format("trap '' TERM HUP\n"
                            "setsid sh -c 'setsid sh -c \"echo \\$\\$ >{0}; exec sleep 3600\" & exit 0'\n"
                            "sh -c 'echo $$ >{0}; exec sleep 3600' &\n"
                            "echo $$ >{0}\n"
                            "sleep 3600\n",
                            fifo));
}
constexpr int hanging_processes = 3;

bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

void wait_for_end(pid_t pid) {
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U));
  if (process < 0) return;  // the process has ended
  pollfd event{process, POLLIN, 0};
  constexpr int limit_ms = 60000;
  CHECK(::poll(&event, 1, limit_ms) == 1);
  ::close(process);
}

TEST_CASE("the exit status of a program and the first line that it prints are the result") {
  const TempDir dir;
  CHECK(result_of(script(dir, "p", "echo well; exit 0")) == json{{"status", 0}, {"reason", "well"}});
  CHECK(result_of(script(dir, "p", "exit 3")) == json{{"status", 3}});
  CHECK(result_of(script(dir, "p", "echo; echo ERROR: disk full; echo more; exit 1")) ==
        json{{"status", 1}, {"reason", "ERROR: disk full"}});
  CHECK(result_of(script(dir, "p", "echo no swap >&2; exit 1")) ==
        json{{"status", 1}, {"reason", "no swap"}});
  CHECK(result_of(script(dir, "p", "printf 'no end of line'; exit 1")) ==
        json{{"status", 1}, {"reason", "no end of line"}});
  CHECK(result_of(script(dir, "p", "printf 'a\\033[2Jb\\377'; exit 1"))["reason"] ==
        "a\\u001b[2Jb\xEF\xBF\xBD");
  CHECK(result_of(script(dir, "p", "kill -9 $$")) ==
        json{{"status", 137}, {"reason", "health check was ended by signal 9 (Killed)"}});
  // A check has no input, and the end of a pipe ends it as usual.
  CHECK(result_of(script(dir, "p", "read line || echo no input; exit 1"))["reason"] == "no input");
  CHECK(result_of(script(dir, "p", "kill -PIPE $$"))["status"] == 141);
}

TEST_CASE("a program that cannot run is unhealthy, and the reason says why") {
  const TempDir dir;
  const std::string missing = dir.file("missing");
  CHECK(result_of(missing) ==
        json{{"status", 127}, {"reason", fmt::format("cannot run {}: No such file or directory", missing)}});
  const std::string text = dir.write("text", "#!/bin/sh\n");
  std::filesystem::permissions(text, std::filesystem::perms::owner_read);
  CHECK(result_of(text)["reason"] == fmt::format("cannot run {}: Permission denied", text));
}

TEST_CASE("of an output without end only the first line is kept") {
  const TempDir dir;
  CHECK(result_of(script(dir, "p", "echo first; head -c 100000000 /dev/zero; exit 1"))["reason"] == "first");
  const std::string reason =
      result_of(script(dir, "p", "head -c 100000000 /dev/zero | tr '\\0' x; exit 1"))["reason"];
  CHECK(reason.size() == 1024);
  CHECK(reason.starts_with("xxx"));
  CHECK(result_of(script(dir, "p", "yes"), "0.3s")["reason"] == "health check timed out after 0.3 s");
}

TEST_CASE("a program that leaves a process behind has ended all the same") {
  const TempDir dir;
  PidFifo fifo(dir);
  const std::string path = script(
      dir, "p", fmt::format("sh -c 'echo $$ >{}; exec sleep 3600' & echo left one; exit 1", fifo.path()));
  CHECK(result_of(path)["reason"] == "left one");
  const pid_t left = fifo.pids(1).front();
  CHECK_FALSE(is_gone(left));
  ::kill(left, SIGKILL);
}

TEST_CASE("a program that hangs is killed with all its descendants") {
  const TempDir dir;
  PidFifo fifo(dir);
  const std::string path = hanging(dir, fifo.path());
  SUBCASE("when its time is up") {
    // Long enough for some of the processes to start.
    CHECK(result_of(path, "1s") == json{{"status", 137}, {"reason", "health check timed out after 1 s"}});
    for (const pid_t pid : fifo.pids_so_far()) CHECK(is_gone(pid));
  }
  SUBCASE("when the check is ended") {
    Process check({agent_program, "health", "--program", path, "--report-fd", "1"});
    const std::vector<pid_t> pids = fifo.pids(hanging_processes);
    check.signal(SIGTERM);
    const Outcome outcome = check.finish();
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    for (const pid_t pid : pids) CHECK(is_gone(pid));
  }
}

/// A node whose check fails while a file exists; the content of the file is the reason.
struct Patient {
  TempDir dir;
  std::string path =
      script(dir, "check", fmt::format("cat {0} 2>/dev/null && exit 1; exit 0", dir.file("ill")));

  void fall_ill(const std::string& reason) const { dir.write("ill", reason + "\n"); }
  void recover() const { std::filesystem::remove(dir.file("ill")); }
  /// Options of an agent that checks so often that tests need not wait.
  [[nodiscard]] std::vector<std::string> options(const std::string& interval = "0.1s") const {
    return {"--synthetic", four_cores, "--health-program", path, "--health-interval", interval};
  }
};

json first_drain(const json& status) { return status.at("drain").begin().value(); }

TEST_CASE("a node is drained when its check fails, and returns by itself when it passes") {
  const Patient patient;
  Watched cluster(three_nodes("health-return = \"auto\""));
  NodeAgent agent(cluster.daemon.uri(), "n1", patient.options());
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_up({1});
  patient.fall_ill("fan is slow");
  scheduler.until_up({});
  CHECK(first_drain(cluster.status())["reason"] == "health: fan is slow");
  CHECK(cluster.status()["unchecked"] == "1");
  patient.recover();
  scheduler.until_up({1});
  CHECK(cluster.status()["unchecked"] == "");
  CHECK(agent.terminate() == 0);
}

TEST_CASE("an undrain warns of each node that it returns while its check fails, drained for that or not") {
  const Patient patient;
  Watched cluster(three_nodes());
  patient.fall_ill("fan is slow");
  const NodeAgent agent(cluster.daemon.uri(), "n1", patient.options("1h"));
  EventFollower events(cluster.daemon.uri());
  CHECK(events.expect("drain")["context"]["reason"] == "health: fan is slow");
  cluster.drain("n2", "power");
  const Outcome chosen = cluster.ctl.run({"undrain", "--by", "n1", "--reason", "health: *", "all"});
  CHECK(chosen.out == "undrained 1 node: n1; n2 drained otherwise\n");
  cluster.drain("n1", "power");
  const Outcome returned = cluster.ctl.run({"undrain", "-f", "all"});
  CHECK(returned.status == 0);
  CHECK(returned.out == "undrained 2 nodes: n[1-2]; n0 not drained\n");
  CHECK(returned.err.starts_with("resourcectl: undrained, but not fit: n1: health: fan is slow, since 20"));
  CHECK(returned.err.ends_with(" ago)\n"));
  CHECK(returned.err.find('\n') == returned.err.size() - 1);
  CHECK(chosen.err.starts_with("resourcectl: undrained, but not fit: n1: health: fan is slow, since 20"));
  cluster.drain("n[1-2]", "power");
  CHECK(cluster.ctl.run({"undrain", "n1"}).err.starts_with("resourcectl: undrained, but not fit: n1: "));
  CHECK(cluster.ctl.run({"undrain", "n2"}).err.empty());
}

TEST_CASE(
    "two agents with one host's name are named, and the well one does not return what the sick one drained") {
  const TempDir dir;
  Watched cluster(three_nodes("health-return = \"auto\""));
  const std::string well = script(dir, "well", "exit 0\n");
  const std::string sick = script(dir, "sick", "echo disk is full\nexit 1\n");
  const auto checked_by = [](const std::string& path) {
    return std::vector<std::string>{"--synthetic", four_cores,          "--health-program",
                                    path,          "--health-interval", "1h"};
  };
  NodeAgent one(cluster.daemon.uri(), "n1", checked_by(well));
  one.expect_log("online as rank 1");
  NodeAgent other(cluster.daemon.uri(), "n1", checked_by(sick));
  EventFollower events(cluster.daemon.uri());
  CHECK(events.expect("drain")["context"]["reason"] == "health: disk is full");
  one.expect_log("another agent speaks for n1 now");
  one.expect_log("online as rank 1");
  const std::string both = fmt::format(
      "two agents say that they are this host and take turns, from uid {0} and uid {0}", ::getuid());
  CHECK(cluster.ctl.output({"status"}).find("n1: " + both) != std::string::npos);
  CHECK(cluster.ctl.output({"show", "n1"}).find("two agents say that they are this host, from") !=
        std::string::npos);
  CHECK(cluster.daemon.log().find("n1: " + both) != std::string::npos);
  other.expect_log("another agent speaks for n1 now");
  other.expect_log("online as rank 1");
  one.expect_log("online as rank 1");
  RawClient client(cluster.daemon.uri());
  CHECK(events_named(client, "undrain").empty());
}

TEST_CASE("health-return is taken live: a node that is well returns at once") {
  const Patient patient;
  Watched cluster(three_nodes());
  patient.fall_ill("fan is slow");
  const NodeAgent agent(cluster.daemon.uri(), "n1", patient.options());
  EventFollower follower(cluster.daemon.uri());
  CHECK(follower.expect("drain")["context"]["reason"] == "health: fan is slow");
  WatchingScheduler scheduler(cluster.daemon.uri());
  patient.recover();
  RawClient waiting(cluster.daemon.uri());
  CHECK(waiting.call("resource.wait", {{"targets", "1"}, {"for", "ready"}}).errnum == 0);
  CHECK(drained_ranks(cluster.status()) == std::set<unsigned>{1});
  cluster.daemon.configure(three_nodes("health-return = \"auto\""));
  cluster.ctl.done({"reload"});
  scheduler.until_up({1});
}

TEST_CASE("a program that hangs makes its node unhealthy") {
  const TempDir dir;
  PidFifo fifo(dir);
  Watched cluster(three_nodes());
  const NodeAgent agent(cluster.daemon.uri(), "n0",
                        {"--synthetic", four_cores, "--health-program", hanging(dir, fifo.path()),
                         "--health-interval", "1h", "--health-timeout", "1s"});
  EventFollower follower(cluster.daemon.uri());
  CHECK(follower.expect("drain")["context"]["reason"] == "health: health check timed out after 1 s");
  for (const pid_t pid : fifo.pids(hanging_processes)) wait_for_end(pid);
}

TEST_CASE("a check ends with its agent, however that ends") {
  const TempDir dir;
  PidFifo fifo(dir);
  Watched cluster(three_nodes());
  NodeAgent agent(cluster.daemon.uri(), "n0",
                  {"--synthetic", four_cores, "--health-program", hanging(dir, fifo.path())});
  const std::vector<pid_t> pids = fifo.pids(hanging_processes);
  SUBCASE("in order") { CHECK(agent.terminate() == 0); }
  SUBCASE("killed") { agent.process().kill(); }
  for (const pid_t pid : pids) wait_for_end(pid);
}

TEST_CASE("with health-gate a node is up after its first check, also after a restart of the daemon") {
  const Patient patient;
  const std::string config = three_nodes("health-gate = true");
  Watched cluster(config);
  // This agent makes only its first check during the test.
  const NodeAgent checked(cluster.daemon.uri(), "n1", patient.options("1h"));
  NodeAgent unchecked(cluster.daemon.uri(), "n2");
  unchecked.expect_log("the daemon keeps this node down until a health check passes");
  CHECK(cluster.ctl.output({"show", "n2"})
            .find("\n  fault       health-gate is set, and its agent runs no checks\n") != std::string::npos);
  {
    WatchingScheduler scheduler(cluster.daemon.uri());
    scheduler.until_up({1});
  }
  cluster.daemon.kill();
  cluster.daemon.start();
  // The agents reconnect, and report the result of their last check again.
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_up({1});
  CHECK(ids(cluster.status()["offline"].get<std::string>()).contains(2));
}

TEST_CASE("drain-lost drains a node whose agent is gone, and its return ends the drain") {
  Watched cluster(three_nodes("grace = 0\ndrain-lost = \"1s\"\nhealth-return = \"auto\""));
  Agents agents = cluster.agents({"n0", "n1", "n2"});
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_up({0, 1, 2});
  EventFollower follower(cluster.daemon.uri());
  agents[1]->process().kill();
  const json drain = follower.expect("drain");
  CHECK(drain["context"]["idset"] == "1");
  CHECK(drain["context"]["reason"].get<std::string>().starts_with("lost: silent since 20"));
  agents[1] = cluster.agent("n1");
  scheduler.until_up({0, 1, 2});
}

TEST_CASE("the result of a check from outside comes through the agent's socket") {
  const TempDir dir;
  const std::string socket = dir.file("health");
  Watched cluster(three_nodes("health-return = \"auto\""));
  NodeAgent agent(cluster.daemon.uri(), "n1", {"--synthetic", four_cores, "--health-socket", socket});
  agent.expect_log("online as rank 1");
  const auto hand_over = [&](const std::string& text) {
    Process check({agent_program, "health", "--program", script(dir, "p", text), "--socket", socket});
    return check.finish();
  };
  WatchingScheduler scheduler(cluster.daemon.uri());
  scheduler.until_up({1});
  CHECK(cluster.status()["unchecked"] == "1");
  const Outcome handed_over = hand_over("echo bad clock; exit 1");
  CHECK(handed_over.status == 0);
  CHECK(handed_over.out.empty());
  CHECK(handed_over.err.empty());
  scheduler.until_up({});
  CHECK(first_drain(cluster.status())["reason"] == "health: bad clock");
  CHECK(hand_over("exit 0").status == 0);
  scheduler.until_up({1});

  CHECK(agent.terminate() == 0);
  CHECK_FALSE(std::filesystem::exists(socket));
  const Outcome late = hand_over("exit 0");
  CHECK(late.status == 1);
  CHECK(late.err == fmt::format("resource-agent: {}: No such file or directory\n", socket));
}

TEST_CASE("a node is drained when no more results of its checks come, and returns with the next one") {
  const TempDir dir;
  const std::string socket = dir.file("health");
  Watched cluster(three_nodes("health-return = \"auto\""));
  EventFollower follower(cluster.daemon.uri());
  const NodeAgent agent(cluster.daemon.uri(), "n1",
                        {"--synthetic", four_cores, "--health-socket", socket, "--health-max-age", "0.2s"});
  const auto expect = [&](const char* name) {
    const json event = follower.expect(name);
    CHECK(event["context"]["idset"] == "1");
    return event["context"];
  };
  const std::string passing = script(dir, "passing", "exit 0");
  // The first drain is due to no result at all.
  for (int results = 0; results < 3; ++results) {
    CHECK(expect("drain")["reason"] == "health: no result of a health check for 0.2s");
    Process check({agent_program, "health", "--program", passing, "--socket", socket});
    CHECK(check.finish().status == 0);
    expect("undrain");
  }
}

TEST_CASE("the agent's socket takes results of root and of its own user") {
  if (!can_be_other_users()) return;
  const TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms{0755});
  const std::string socket = dir.file("health");
  Watched cluster(three_nodes());
  NodeAgent agent(cluster.daemon.uri(), "n1", {"--synthetic", four_cores, "--health-socket", socket});
  agent.expect_log("online as rank 1");
  const auto as_nobody = [&] {
    Process check({"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/bin/sh", "-c",
                   "exec python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX, "
                   "socket.SOCK_DGRAM).sendto(b\"{\\\"status\\\": 1}\", sys.argv[1])' \"$0\"",
                   socket});
    return check.finish();
  };
  CHECK(as_nobody().status != 0);
  std::filesystem::permissions(socket, std::filesystem::perms{0666});
  CHECK(as_nobody().status == 0);
  agent.expect_log("refused a result of uid 65534");
  CHECK(drained_ranks(cluster.status()).empty());
}

TEST_CASE("options for health that do not fit together are refused") {
  const auto run = [](const std::vector<std::string>& options) {
    std::vector<std::string> command{agent_program};
    command.insert(command.end(), options.begin(), options.end());
    return Process(command).finish();
  };
  CHECK(run({"--health-interval", "5m"}).status == 2);
  CHECK(run({"--health-program", "/bin/true", "--health-socket", "/s"}).status == 2);
  CHECK(run({"--health-program", "/bin/true", "--health-timeout", "0"}).status == 2);
  CHECK(run({"health"}).status == 2);
  CHECK(run({"health", "--program", "/bin/true", "--socket", "/s", "--report-fd", "1"}).status == 2);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

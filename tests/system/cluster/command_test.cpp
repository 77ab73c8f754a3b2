// resourcectl cluster, with daemons whose log is in the real etcd.
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "client/acquisition.hpp"
#include "cluster_node.hpp"
#include "harness/ctl.hpp"
#include "holder.hpp"
#include "shared_etcd.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;

std::vector<json> rows(const std::string& lines) {
  std::vector<json> found;
  std::size_t begin = 0;
  for (std::size_t end = lines.find('\n'); end != std::string::npos; end = lines.find('\n', begin)) {
    found.push_back(json::parse(lines.substr(begin, end - begin)));
    begin = end + 1;
  }
  return found;
}

/// The rows of `cluster show` once both daemons are connected and have the same events.
std::vector<json> settled(const Ctl& ctl) {
  while (true) {
    std::vector<json> found = rows(ctl.output({"cluster", "show", "--json"}));
    if (found.size() == 2 && found[0].at("behind") == 0 && found[1].at("behind") == 0) return found;
  }
}

/// The epochs of the leaders that a scheduler has acquired from.
class Epochs final : public client::AcquisitionObserver {
 public:
  explicit Epochs(client::Connection& connection) : connection_(connection) {}

  void on_response(std::string_view response) override {
    const json payload = json::parse(response);
    if (!payload.contains("resources")) return;
    seen.push_back(payload.at("epoch"));
    connection_.stop();
  }
  void on_error(const Error& why) override { FAIL(why.what()); }

  std::vector<client::Epoch> seen;

 private:
  client::Connection& connection_;
};

/// A cluster of two daemons, whose first one leads.
struct Pair {
  Etcd etcd;
  Node first{"a", etcd.toml()};
  Node second{name_after(first, "b"), etcd.toml()};
  Ctl ctl{both(first, second)};
};

}  // namespace

TEST_SUITE_BEGIN("cluster command");

TEST_CASE_FIXTURE(
    Pair, "cluster show lists the daemons, the leader with its epoch, and the replication lag of each") {
  ctl.done({"drain", "1", "before"});
  const std::vector<json> found = settled(ctl);
  const json leader = json::parse(etcd.control({"get", "/resourced/leader", "-w", "json"})).at("kvs").at(0);
  const std::string head = etcd.control({"get", "/resourced/head", "--print-value-only"});
  CHECK(found[0].at("name") == "a");
  CHECK(found[0].at("role") == "leader");
  CHECK(found[0].at("epoch") == leader.at("create_revision"));
  CHECK(found[0].at("events") == std::stoi(head));
  CHECK(found[0].at("uri") == first.uri());
  CHECK(found[1].at("name") == "b");
  CHECK(found[1].at("role") == "standby");
  CHECK(found[1].at("epoch").is_null());
  CHECK(found[1].at("events") == std::stoi(head));
  CHECK(found[1].at("uri") == second.uri());
  CHECK(found[1].at("version") == found[0].at("version"));
  // The command without a subcommand prints a table.
  const std::string table = ctl.output({"cluster"});
  CHECK(table.starts_with("NAME ROLE    EPOCH EVENTS BEHIND VERSION URI "));
  CHECK(table.find(" DIFFERS\na    leader ") != std::string::npos);
  second.kill(etcd);
  while (rows(ctl.output({"cluster", "show", "--json"})).size() > 1) continue;
}

TEST_CASE_FIXTURE(Pair, "a hand-over lets the other daemon lead, with every change that was answered") {
  ctl.done({"drain", "1", "before"});
  const auto before = settled(ctl)[0].at("epoch").get<int>();
  for (const char* next : {"b", "a", "b"}) {
    const json done = json::parse(ctl.output({"cluster", "hand-over", "--json"}));
    CHECK(done.at("change") == "hand-over");
    CHECK(done.at("to") == next);
    CHECK(done.at("epoch") > before);
    MESSAGE("hand-over after ", done.at("seconds").get<double>(), " s");
    ctl.done({"drain", "-f", "2", fmt::format("by {}", next)});
    // The former leader has to be a standby first.
    (void)settled(ctl);
  }
  client::Connection connection(both(first, second));
  CHECK(reasons(connection) == std::vector<std::string>{"before", "by b", "by a", "by b"});
  CHECK(ctl.output({"cluster", "hand-over", "a"}).starts_with("a leads, epoch "));
  (void)settled(ctl);
  // A client that knows only the old leader learns from it where the successor is.
  CHECK(Ctl(first.uri()).output({"cluster", "hand-over", "b"}).starts_with("b leads, epoch "));
}

TEST_CASE_FIXTURE(Pair, "a hand-over is refused to a daemon that leads or is not there") {
  (void)settled(ctl);
  const Outcome itself = ctl.run({"cluster", "hand-over", "a"});
  CHECK(itself.status == 1);
  CHECK(itself.err == "resourcectl: \"a\" leads already\n");
  const Outcome unknown = ctl.run({"cluster", "hand-over", "x"});
  CHECK(unknown.status == 1);
  CHECK(unknown.err == "resourcectl: there is no standby \"x\"; resourcectl cluster shows them\n");
  second.terminate();
  const Outcome alone = ctl.run({"cluster", "hand-over"});
  CHECK(alone.status == 1);
  CHECK(alone.err == "resourcectl: there is no standby that could lead\n");
  ctl.done({"drain", "1", "it leads as before"});
}

TEST_CASE("a hand-over to a daemon that cannot be reached from here says that it was made") {
  Etcd etcd;
  Node first("a", etcd.toml());
  Node second(name_after(first, "b"), etcd.toml(), "advertise = \"ipc:///nonexistent/bus\"\n");
  const Ctl ctl(first.uri());
  while (rows(ctl.output({"cluster", "show", "--json"})).size() != 2) continue;
  const Outcome outcome = ctl.run({"--timeout", "1s", "cluster", "hand-over"});
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("the hand-over to b was accepted, but no leader is found: ") != std::string::npos);
  CHECK(outcome.err.find("Give the URIs of all daemons that this host reaches") != std::string::npos);
  second.until_leading();
}

TEST_CASE("a daemon that would tell others a URI of no use does not start") {
  Etcd etcd;
  Node node("a", etcd.toml(), "advertise = \"tcp://*:7481\"\n");
  CHECK(node.process().wait(Deadline(std::chrono::seconds(30))) == 1);
  CHECK(node.log().find("cluster.advertise: ") != std::string::npos);
}

TEST_CASE_FIXTURE(Pair, "a daemon that is stopped while it hands over stops") {
  (void)settled(ctl);
  ctl.done({"cluster", "hand-over"});
  first.terminate();
  second.terminate();
}

TEST_CASE_FIXTURE(Pair, "drain --wait goes on at the next leader, until the last allocation is freed there") {
  Holder scheduler(both(first, second));
  scheduler.alloc("job", 0);
  CHECK(scheduler.outcomes(1) == std::vector<std::string>{""});
  (void)settled(ctl);
  const auto waits = ctl.start({"drain", "--wait", "0", "fan"});
  CHECK(waits->expect_line() == "drained 1 node: test0 (fan)");
  ctl.done({"cluster", "hand-over"});
  CHECK(scheduler.acquired(2) == std::vector<std::string>{"job"});
  CHECK_THROWS((void)waits->read_line(Deadline(std::chrono::milliseconds(300))));
  scheduler.free("job");
  CHECK(scheduler.outcomes(2).back().empty());
  CHECK(waits->expect_line() == "idle: 1 node: test0");
  CHECK(waits->wait() == 0);
}

TEST_CASE_FIXTURE(Pair, "a scheduler follows a hand-over to the next epoch") {
  client::Connection connection(both(first, second));
  Epochs epochs(connection);
  const client::Acquisition acquisition(connection, epochs);
  REQUIRE(connection.run_for(patience));
  (void)settled(ctl);
  ctl.done({"cluster", "hand-over"});
  REQUIRE(connection.run_for(patience));
  REQUIRE(epochs.seen.size() == 2);
  CHECK(epochs.seen[1] > epochs.seen[0]);
}

TEST_SUITE_END();

}  // namespace resourced::e2e

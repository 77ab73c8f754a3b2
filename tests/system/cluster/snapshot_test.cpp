// Daemons whose stores lack events that etcd does not have any more: they start from a snapshot, and lead
// with its whole state.
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cluster_node.hpp"
#include "harness/ctl.hpp"
#include "holder.hpp"
#include "shared_etcd.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;
namespace fs = std::filesystem;

const std::string small = "snapshot-events = 10\n";

int head(const Etcd& etcd) {
  return std::stoi(etcd.control({"get", "/resourced/head", "--print-value-only"}));
}

/// The status without the keys that differ between a leader and a standby.
json states(json status) {
  for (const char* key : {"sequence", "unchecked"}) status.erase(key);
  return status;
}

void change(client::Connection& connection, int events) {
  for (int i = 0; i < events; ++i) {
    const std::string topic = i % 2 == 0 ? "resource.drain" : "resource.undrain";
    json payload{{"targets", "5"}};
    if (i % 2 == 0) payload.update({{"reason", "again"}, {"mode", "overwrite"}});
    connection.call(topic, payload, patience);
  }
}

/// Waits until etcd has no events up to and including this one.
void until_trimmed(const Etcd& etcd, int sequence) {
  const Deadline deadline(patience);
  const std::string end = fmt::format("/resourced/log/{:020}", sequence + 1);
  while (!deadline.passed()) {
    if (etcd.control({"get", "/resourced/log/", end, "--keys-only"}).empty()) return;
  }
  FAIL("the log is not trimmed");
}

/// Makes the state that a single daemon will bring into a cluster.
void live(client::Connection& connection) {
  drain(connection, "1", "bad fan");
  connection.call("resource.property", {{"op", "add"}, {"name", "fast"}, {"targets", "2"}}, patience);
  change(connection, 300);
}

/// Whether no file of a copy stays. A leader may just be making one.
bool leaves_nothing(const Node& node) {
  const Deadline deadline(patience);
  for (const char* name : {"resourced.sqlite.new", "resourced.sqlite.copy"}) {
    while (fs::exists(node.dir() / "state" / name)) {
      if (deadline.passed()) return false;
    }
  }
  return true;
}

}  // namespace

TEST_SUITE_BEGIN("cluster snapshot");

TEST_CASE("a cluster that begins with a store gives its state to an empty daemon, which takes over") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  {
    client::Connection connection(first.uri());
    live(connection);
    Holder scheduler(first.uri());
    scheduler.alloc("job1", 0);
    CHECK(scheduler.outcomes(1) == std::vector<std::string>{""});
  }
  // The daemon starts outside of the cluster, and then begins another one.
  first.terminate();
  etcd.control({"del", "--prefix", "/resourced/"});
  REQUIRE(first.run({"--cluster-init"}).status == 0);
  first.start();
  first.until_leading();
  Node second("b", etcd.toml());
  until_serving(second.uri());
  json told;
  {
    client::Connection leader(first.uri());
    told = states(leader.call("resource.status", json::object(), patience));
    CHECK(told.dump().find("bad fan") != std::string::npos);
    CHECK(told.dump().find("fast") != std::string::npos);
  }
  const Deadline deadline(patience);
  json found;
  while (found != told && !deadline.passed()) {
    try {
      until_serving(second.uri());
      client::Connection standby(second.uri());
      found = states(status_after(standby, head(etcd)));
    } catch (const Error&) {
      // The standby ends its connections when it starts again from the snapshot.
    }
  }
  CHECK(found == told);
  const std::string allocations = Ctl(first.uri()).output({"allocations"});
  CHECK(allocations.find("job1") != std::string::npos);
  first.kill(etcd);
  second.until_leading();
  client::Connection next(second.uri());
  CHECK(states(next.call("resource.status", json::object(), patience))["drain"] == told["drain"]);
  CHECK(Ctl(second.uri()).output({"allocations"}) == allocations);
  CHECK(leaves_nothing(second));
  drain(next, "3", "after");
  // The new leader's log begins with the snapshot.
  CHECK(events(next).size() < 20);
}

TEST_CASE("a daemon that was off for longer than etcd keeps events begins with a snapshot, and follows") {
  Etcd etcd;
  Node first("a", etcd.toml(), small);
  Node second(name_after(first, "b"), etcd.toml(), small);
  client::Connection leader(first.uri());
  change(leader, 5);
  {
    until_serving(second.uri());
    client::Connection standby(second.uri());
    (void)status_after(standby, head(etcd));
  }
  second.process().kill();
  const int known = head(etcd);
  change(leader, 400);
  until_trimmed(etcd, known + 1);
  second.start();
  for (int round = 0; round < 2; ++round) {
    change(leader, 3);
    const Deadline deadline(patience);
    json found;
    while (found.is_null() && !deadline.passed()) {
      try {
        until_serving(second.uri());
        client::Connection standby(second.uri());
        found = states(status_after(standby, head(etcd)));
      } catch (const Error&) {
      }
    }
    CHECK(found == states(leader.call("resource.status", json::object(), patience)));
  }
  CHECK(second.log().find("in place of its store, which ends with event") != std::string::npos);
  first.kill(etcd);
  second.until_leading();
  client::Connection next(second.uri());
  change(next, 100);
  CHECK(leaves_nothing(second));
}

TEST_CASE("whenever a daemon is killed that takes a snapshot, it has one store or the other" *
          only_thorough()) {
  // An inventory of some megabytes makes the snapshot take a while.
  const std::string hosts = scattered_hosts();
  Etcd etcd;
  Node first("a", etcd.toml(), small, usual_lease, hosts);
  first.until_leading();
  client::Connection leader(first.uri());
  drain(leader, "0-16383", "all of them");
  change(leader, 400);
  until_trimmed(etcd, 3);
  Node second("b", etcd.toml(), small, usual_lease, hosts);
  const Deadline deadline(std::chrono::seconds(240));
  std::size_t killed = 0;
  for (int pause = 1; !deadline.passed(); pause += 1 + pause / 8) {
    // Kill the daemon a little later each time, at some point while it takes the snapshot.
    for (int i = 0; i < pause; ++i) (void)leader.call("resource.ping", json::object(), patience);
    if (second.log().find("takes the snapshot") != std::string::npos) ++killed;
    second.process().kill();
    second.start();
    if (killed > 12) break;
  }
  CHECK(killed > 12);
  until_serving(second.uri());
  json found;
  while (found.is_null() && !deadline.passed()) {
    try {
      until_serving(second.uri());
      client::Connection standby(second.uri());
      found = states(status_after(standby, head(etcd)));
    } catch (const Error&) {
    }
  }
  CHECK(found == states(leader.call("resource.status", json::object(), patience)));
  CHECK(leaves_nothing(second));
}

TEST_SUITE_END();

}  // namespace resourced::e2e

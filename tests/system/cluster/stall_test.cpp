// A leader whose commits etcd does not confirm: it serves the committed state, and nothing else.
#include <chrono>
#include <csignal>
#include <cstddef>
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

/// Pauses members of etcd for the lifetime of this object.
class Paused {
 public:
  Paused(Etcd& etcd, std::vector<std::size_t> members) : etcd_(etcd), members_(std::move(members)) {
    for (const std::size_t member : members_) etcd_.process(member).signal(SIGSTOP);
  }
  ~Paused() { go_on(); }
  Paused(const Paused&) = delete;
  Paused& operator=(const Paused&) = delete;
  Paused(Paused&&) = delete;
  Paused& operator=(Paused&&) = delete;
  void go_on() {
    for (const std::size_t member : std::exchange(members_, {})) etcd_.process(member).signal(SIGCONT);
  }

 private:
  Etcd& etcd_;
  std::vector<std::size_t> members_;
};

/// A drain that was sent; its outcome comes later.
struct SentDrain {
  SentDrain(const std::string& uri, const std::string& targets) : connection(uri) {
    // Once it is connected, a request is at the daemon before those that others send later.
    connection.call("resource.ping", json::object(), patience);
    connection.send("resource.drain", {{"targets", targets}, {"reason", "stuck"}, {"mode", "overwrite"}},
                    [&](const client::Response& response) {
                      was_made = response.ok();
                      has_ended = true;
                      connection.stop();
                    },
                    {});
    connection.run_for(client::Milliseconds(100));
  }
  client::Connection connection;
  bool was_made = false;
  bool has_ended = false;
};

double seconds_of(const Ctl& ctl, const std::vector<std::string>& arguments, std::string& out) {
  const auto begun = std::chrono::steady_clock::now();
  out = ctl.output(arguments);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

/// Waits until the leader refuses changes, as its daemon is not ready then.
void until_stalled(client::Connection& reader) {
  const Deadline deadline(patience);
  while (!deadline.passed()) {
    try {
      reader.call("resource.ready", json::object(), patience);
    } catch (const Error& error) {
      REQUIRE(error.errnum() == EAGAIN);
      return;
    }
  }
  FAIL("the leader commits");
}

std::string drained(const Ctl& ctl) { return ctl.output({"drain", "-n", "-o", "{nodelist} {reason}"}); }

}  // namespace

TEST_SUITE_BEGIN("cluster stall");

TEST_CASE("while etcd does not confirm a drain, reads show the state without it, and changes are refused") {
  std::vector<std::vector<std::size_t>> cases{{0, 1, 2}};
  if (test::thorough(true, false)) cases.push_back({1, 2});
  for (const std::vector<std::size_t>& paused : cases) {
    CAPTURE(paused.size());
    Etcd etcd({.members = 3});
    constexpr int lease_ttl = 60;
    // The bound in seconds: a read that waited for etcd would take until the end of the lease.
    constexpr double bound = 15;
    Node node("a", etcd.toml(), "", lease_ttl);
    node.until_leading();
    const Ctl ctl(node.uri());
    ctl.done({"drain", "1", "before"});
    const std::string events = ctl.output({"eventlog"});
    Paused pause(etcd, paused);
    SentDrain sent(node.uri(), "2");
    std::string out;
    CHECK(seconds_of(ctl, {"status", "-n", "-s", "drained", "-o", "{nodelist}"}, out) < bound);
    CHECK(out == "test1\n");
    const struct {
      std::vector<std::string> command;
      std::string expected;
    } reads[] = {{{"list", "-n", "-s", "down", "-o", "{nodelist}"}, "test1\n"},
                 {{"info", "-s", "down"}, "1 Nodes, 4 Cores, 0 GPUs\n"},
                 {{"info"}, "8 Nodes, 32 Cores, 0 GPUs\n"},
                 {{"eventlog"}, events}};
    for (const auto& [command, expected] : reads) {
      CAPTURE(command[0]);
      CHECK(seconds_of(ctl, command, out) < bound);
      CHECK(out == expected);
    }
    CHECK(drained(ctl) == "test1 before\n");
    ctl.done({"R", "show"});
    ctl.done({"ping", "--count", "1"});
    ctl.done({"stats"});
    client::Connection reader(node.uri());
    CHECK(reader.call("resource.status", json::object(), patience)["drain"].size() == 1);
    CHECK(reader.call("resource.leader", json::object(), patience).contains("epoch"));
    until_stalled(reader);
    const Outcome refused = ctl.run({"--timeout", "1s", "drain", "3", "later"});
    CHECK(refused.status == 1);
    CHECK(refused.err.find("etcd has not confirmed a change for ") != std::string::npos);
    // This command waits for seconds.
    if (test::thorough(true, false)) {
      const Outcome members = ctl.run({"cluster"});
      CHECK(members.status == 1);
      CHECK(members.err.find("etcd has not answered: ") != std::string::npos);
    }
    CHECK_FALSE(sent.has_ended);
    pause.go_on();
    sent.connection.run_for(patience);
    CHECK(sent.was_made);
    CHECK(reasons(reader) == std::vector<std::string>{"before", "stuck"});
    CHECK(drained(ctl) == "test1 before\ntest2 stuck\n");
  }
}

TEST_CASE("allocations that etcd does not confirm in time are answered once it does, each made once") {
  Etcd etcd({.members = 3});
  constexpr int lease_ttl = 30;
  Node node("a", etcd.toml(), "", lease_ttl);
  node.until_leading();
  const Ctl ctl(node.uri());
  Holder scheduler(node.uri());
  Paused pause(etcd, {0, 1, 2});
  // One request: of several, those that a slow machine takes a second later are refused.
  scheduler.alloc_all({{"job0", 0}, {"job1", 1}, {"job2", 2}});
  scheduler.turn();
  client::Connection reader(node.uri());
  until_stalled(reader);
  const Outcome refused = ctl.run({"--timeout", "1s", "drain", "7", "later"});
  CHECK(refused.err.find("etcd has not confirmed a change for ") != std::string::npos);
  scheduler.turn();
  CHECK(scheduler.outcomes(0) == std::vector<std::string>());
  pause.go_on();
  CHECK(scheduler.outcomes(1) == std::vector<std::string>(1));
  scheduler.alloc("again", 2);
  CHECK(scheduler.outcomes(2).back().find("job2") != std::string::npos);
  CHECK(ctl.output({"allocations", "-n", "-o", "{id} {nodelist}"}) == "job0 test0\njob1 test1\njob2 test2\n");
}

TEST_CASE(
    "at the end of the lease the client of a stuck drain is disconnected, and the drain is whole or not "
    "there" *
    only_thorough()) {
  Etcd etcd({.members = 3});
  constexpr int lease_ttl = 5;
  Node node("a", etcd.toml(), "", lease_ttl);
  node.until_leading();
  const Ctl ctl(node.uri());
  ctl.done({"drain", "1", "before"});
  Paused pause(etcd, {0, 1, 2});
  SentDrain sent(node.uri(), "2");
  CHECK(drained(ctl) == "test1 before\n");
  sent.connection.run_for(patience);
  CHECK(sent.has_ended);
  CHECK_FALSE(sent.was_made);
  // The daemon follows now, and serves the state of its store.
  until_serving(node.uri());
  CHECK(drained(ctl) == "test1 before\n");
  pause.go_on();
  node.until_leading();
  client::Connection reader(node.uri());
  const std::vector<std::string> made = reasons(reader);
  const std::string shown = drained(ctl);
  CHECK(shown == (made.size() == 2 ? "test1 before\ntest2 stuck\n" : "test1 before\n"));
  MESSAGE("the drain was made: ", made.size() == 2);
}

TEST_SUITE_END();

}  // namespace resourced::e2e

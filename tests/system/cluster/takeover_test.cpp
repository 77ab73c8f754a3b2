// Two or three daemons with their log in the real etcd: the leader is killed, paused, disconnected or
// stopped, and a standby takes over with every answered change.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "client/connection.hpp"
#include "cluster_node.hpp"
#include "harness/ctl.hpp"
#include "harness/daemon.hpp"
#include "shared_etcd.hpp"
#include "wire/deadline.hpp"

namespace resourced::e2e {

using Etcd = test::SharedEtcd;

TEST_SUITE_BEGIN("cluster");

TEST_CASE("a standby takes over from a leader that is killed, with every answered change") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  Node second("b", etcd.toml());
  client::Connection connection(both(first, second));
  std::vector<std::string> answered;
  std::array<Node*, 2> nodes{&first, &second};
  for (std::size_t round = 0; round < test::thorough<std::size_t>(4, 2); ++round) {
    Node& leader = *nodes.at(round % 2);
    Node& standby = *nodes.at((round + 1) % 2);
    for (int i = 0; i < 20; ++i) {
      answered.push_back(fmt::format("change {}.{}", round, i));
      drain(connection, fmt::format("{}", i % 8), answered.back());
    }
    leader.kill(etcd);
    const auto killed = std::chrono::steady_clock::now();
    standby.until_leading();
    // A request that failed with the connection was not answered, and may be repeated.
    try {
      drain(connection, "7", fmt::format("takeover {}", round));
    } catch (const Error& error) {
      REQUIRE(error.errnum() == ECONNRESET);
      drain(connection, "7", fmt::format("takeover {}", round));
    }
    answered.push_back(fmt::format("takeover {}", round));
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - killed;
    MESSAGE("takeover after ", time.count(), " s");
    CHECK(reasons(connection) == answered);
    leader.start();
  }
}

TEST_CASE("connections to a standby, and their streams, go on when it takes over") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  Node second("b", etcd.toml());
  until_serving(second.uri());
  client::Connection reader(second.uri());
  std::vector<std::string> told;
  reader.send("resource.journal",
              [&](const client::Response& response) {
                REQUIRE(response.ok());
                const json payload = response.payload();
                for (const json& event : payload.at("events"))
                  if (event["name"] == "drain") told.push_back(event["context"]["reason"]);
                reader.stop();
              },
              {.streaming = true});
  const auto until_told = [&](const std::string& reason) {
    const Deadline deadline(patience);
    while (std::ranges::count(told, reason) == 0 && !deadline.passed()) reader.run_for(patience);
  };
  client::Connection operators(both(first, second));
  drain(operators, "1", "before");
  until_told("before");
  first.kill(etcd);
  second.until_leading();
  // The same connection may change something now.
  drain(reader, "2", "after");
  until_told("after");
  CHECK(fmt::format("{}", fmt::join(told, " ")) == "before after");
}

TEST_CASE("a leader that stops hands over at once, and clients wait for the next one") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  Node second("b", etcd.toml());
  client::Connection connection(both(first, second));
  drain(connection, "0", "before");
  first.terminate();
  client::Connection fresh(both(first, second));
  drain(fresh, "1", "after");
  CHECK(reasons(fresh) == std::vector<std::string>{"before", "after"});
  second.until_leading();
}

TEST_CASE("a daemon that is stopped while it becomes the leader stops in good order") {
  Etcd etcd;
  constexpr int lease_ttl = 60;
  // With so many hosts, the daemon is the leader for a moment before it serves.
  Node node("a", etcd.toml(), "", lease_ttl, "test[0-199999]");
  while (etcd.control({"get", "/resourced/leader", "--keys-only"}).empty()) continue;
  node.terminate();
  CHECK(etcd.control({"get", "/resourced/leader", "--keys-only"}).empty());
}

TEST_CASE("a leader that was paused is deposed, and follows") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  Node second("b", etcd.toml());
  client::Connection old(first.uri());
  drain(old, "0", "before");
  first.pause(etcd);
  second.until_leading();
  // The paused leader finds this request in its socket when it continues.
  bool was_answered = false;
  bool has_ended = false;
  old.send("resource.drain", {{"targets", "1"}, {"reason", "of the deposed"}, {"mode", "overwrite"}},
           [&](const client::Response& response) {
             was_answered = response.ok();
             has_ended = true;
             old.stop();
           },
           {});
  client::Connection connection(second.uri());
  drain(connection, "2", "after");
  first.process().signal(SIGCONT);
  old.run_for(patience);
  CHECK(has_ended);
  CHECK_FALSE(was_answered);
  CHECK(reasons(connection) == std::vector<std::string>{"before", "after"});
  // The deposed leader follows: when the second daemon stops, it leads with all changes.
  second.terminate();
  first.until_leading();
  client::Connection again(first.uri());
  CHECK(reasons(again) == std::vector<std::string>{"before", "after"});
}

TEST_CASE("a client that is connected to a leader that is paused finds the next one within seconds" *
          only_thorough()) {
  Etcd etcd;
  Node first("a", etcd.toml());
  const Node second(name_after(first, "b"), etcd.toml());
  client::Connection connection(both(first, second));
  drain(connection, "0", "before");
  const auto begin = std::chrono::steady_clock::now();
  first.process().signal(SIGSTOP);
  bool is_made = false;
  for (const Deadline deadline(patience); !is_made && !deadline.passed();) {
    try {
      drain(connection, "1", "after");
      is_made = true;
    } catch (const Error& error) {
      // The first change was sent over a connection that was not known to be lost.
      CHECK(error.errnum() == ECONNRESET);
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  first.process().signal(SIGCONT);
  CHECK(is_made);
  MESSAGE("first answered change after ", took.count(), " s");
  CHECK(took.count() < usual_lease + 5);
}

TEST_CASE("a killed member of etcd changes nothing, and without a majority nobody is answered" *
          only_thorough()) {
  Etcd etcd({.members = 3});
  // This lease outlasts an election of etcd, which may take two seconds.
  Node first("a", etcd.toml(), "", 6);
  first.until_leading();
  client::Connection connection(first.uri());
  drain(connection, "0", "three members");
  etcd.kill(0);
  drain(connection, "1", "two members");
  etcd.kill(1);
  // The change is not answered, and the client is disconnected at the end of the lease.
  CHECK_THROWS_AS(drain(connection, "2", "one member"), Error);
  etcd.start(0);
  etcd.start(1);
  first.until_leading();
  client::Connection again(first.uri());
  const std::vector<std::string> found = reasons(again);
  REQUIRE(found.size() >= 2);
  CHECK(found[0] == "three members");
  CHECK(found[1] == "two members");
}

TEST_CASE(
    "while etcd does not answer, a change that was sent waits, and others are refused and change nothing") {
  Etcd etcd;
  constexpr int lease_ttl = 30;
  Node node("a", etcd.toml(), "", lease_ttl);
  node.until_leading();
  client::Connection first(node.uri());
  drain(first, "0", "before");
  etcd.process(0).signal(SIGSTOP);
  bool was_made = false;
  first.send("resource.drain", {{"targets", "1"}, {"reason", "sent"}, {"mode", "overwrite"}},
             [&](const client::Response& response) {
               was_made = response.ok();
               first.stop();
             },
             {});
  first.run_for(client::Milliseconds(1));
  std::optional<Error> refused;
  // Changes are accepted until the first one has waited for a second; these are made later, too.
  int taken = 0;
  for (const Deadline deadline(patience); !refused && !deadline.passed();) {
    client::Connection other(node.uri());
    ++taken;
    other.send("resource.drain", {{"targets", "2"}, {"reason", "later"}, {"mode", "overwrite"}},
               [&](const client::Response& response) {
                 try {
                   (void)response.payload();
                 } catch (const Error& error) {
                   if (error.errnum() == EAGAIN) refused = error;
                 }
               },
               {});
    other.run_for(client::Milliseconds(200));
  }
  REQUIRE(refused);
  CHECK(std::string(refused->what()).find("etcd has not confirmed a change for ") != std::string::npos);
  CHECK_FALSE(was_made);
  etcd.process(0).signal(SIGCONT);
  first.run_for(patience);
  CHECK(was_made);
  // The changes that were made later are confirmed one transaction after it.
  for (const Deadline deadline(patience);;) {
    try {
      drain(first, "3", "after");
      break;
    } catch (const Error& error) {
      if (error.errnum() != EAGAIN || deadline.passed()) throw;
    }
  }
  std::vector<std::string> made = reasons(first);
  CHECK(std::erase(made, "later") == static_cast<std::size_t>(taken - 1));
  CHECK(made == std::vector<std::string>{"before", "sent", "after"});
}

TEST_CASE("an inventory that fills several values of etcd is followed like any other") {
  const std::string hosts = scattered_hosts();
  Etcd etcd;
  Node first("a", etcd.toml(), "", usual_lease, hosts);
  first.until_leading();
  CHECK(etcd.control({"get", "--prefix", "/resourced/part/", "--keys-only"}).size() > 100);
  Node second("b", etcd.toml(), "", usual_lease, hosts);
  client::Connection connection(both(first, second));
  drain(connection, "16383", "of many");
  const json before = connection.call("resource.status");
  first.kill(etcd);
  second.until_leading();
  client::Connection after(second.uri());
  CHECK(after.call("resource.status") == before);
  CHECK(reasons(after) == std::vector<std::string>{"of many"});
}

TEST_CASE("an inventory in parts is put whole though etcd was killed while the leader put it") {
  Etcd etcd;
  Node first("a", etcd.toml(), "", 30);
  first.until_leading();
  Node second("b", etcd.toml(), "", 30);
  until_serving(second.uri());
  const json wanted = {{"version", 1},
                       {"execution",
                        {{"R_lite", {{{"rank", "0-16383"}, {"children", {{"core", "0-3"}}}}}},
                         {"nodelist", {scattered_hosts()}},
                         {"starttime", 0},
                         {"expiration", 0}}}};
  first.dir().write("R.json", wanted.dump());
  etcd.process(0).signal(SIGSTOP);
  client::Connection connection(first.uri());
  connection.call("resource.ping", json::object(), patience);
  bool was_made = false;
  connection.send("resource.reload", {{"path", (first.dir() / "R.json").string()}, {"force", true}},
                  [&](const client::Response& response) {
                    was_made = response.ok();
                    connection.stop();
                  },
                  {});
  connection.run_for(client::Milliseconds(100));
  const Deadline deadline(patience);
  while (
      Ctl(first.uri()).run({"--timeout", "2s", "drain", "0", "refused"}).err.find("etcd has not confirmed") ==
      std::string::npos)
    REQUIRE_FALSE(deadline.passed());
  etcd.kill(0);
  etcd.start(0);
  connection.run_for(patience);
  CHECK(was_made);
  CHECK(etcd.control({"get", "--prefix", "/resourced/part/", "--keys-only"}).size() > 100);
  const std::string inventory = Ctl(first.uri()).output({"R", "show"});
  CHECK(inventory.find("n00000000x") != std::string::npos);
  client::Connection standby(second.uri());
  (void)status_after(standby, std::stoi(etcd.control({"get", "/resourced/head", "--print-value-only"})));
  CHECK(Ctl(second.uri()).output({"R", "show"}) == inventory);
}

TEST_CASE("a daemon that leaves its cluster keeps its events, and is not taken back by accident") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  client::Connection connection(first.uri());
  drain(connection, "0", "in the cluster");
  first.terminate();
  const std::string configuration = read_file(first.dir() / "resourced.toml");
  first.dir().write("resourced.toml", configuration.substr(0, configuration.find("[cluster]")));
  first.start();
  first.until_leading();
  client::Connection alone(first.uri());
  CHECK(reasons(alone) == std::vector<std::string>{"in the cluster"});
  drain(alone, "1", "alone");
  first.terminate();
  first.dir().write("resourced.toml", configuration);
  first.start();
  CHECK(first.process().wait(Deadline(std::chrono::seconds(30))) == 1);
  CHECK(first.log().find("has events of its own") != std::string::npos);
}

TEST_CASE("a cluster begins with the events of a daemon on its own, and only with those") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  {
    client::Connection connection(first.uri());
    drain(connection, "0", "history");
  }
  first.terminate();
  // A daemon with events does not join a cluster that its store does not name, although it has begun that
  // cluster.
  Node other("a", etcd.toml(), "prefix = \"/other\"\n");
  other.until_leading();
  other.terminate();
  std::filesystem::remove(other.dir() / "state" / "resourced.cluster");
  other.start();
  CHECK(other.process().wait(Deadline(std::chrono::seconds(30))) == 1);
  CHECK(other.log().find("has events of its own") != std::string::npos);
  etcd.control({"del", "--prefix", "/other/"});
  const Outcome outcome = other.run({"--cluster-init"});
  CHECK(outcome.err == "");
  CHECK(outcome.status == 0);
  CHECK(outcome.out.find("the cluster at /other/ begins with") == 0);
  other.start();
  other.until_leading();
}

TEST_SUITE_END();

}  // namespace resourced::e2e

// Nodes with real agents while another daemon takes over: the nodes stay online until their agents have had
// time to connect to the new leader.
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cluster_node.hpp"
#include "shared_etcd.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;

// Only a thorough test waits for the end of the takeover grace.
const std::string watched = fmt::format(
    "takeover-grace = \"{}s\"\n[monitor]\nmode = \"agents\"\ngrace = \"0.1s\"\n", test::thorough(5, 600));

std::unique_ptr<Process> agent(const std::string& uris, const std::string& host) {
  return std::make_unique<Process>(std::vector<std::string>{RESOURCED_BIN "/resource-agent", "--uri", uris,
                                                            "--hostname", host, "--synthetic",
                                                            "package:1 core:4 pu:1"});
}

std::string online(client::Connection& connection) {
  return connection.call("resource.status", json::object(), patience).at("online");
}

void until_online(client::Connection& connection, const std::string& ranks) {
  std::string found;
  const Deadline deadline(patience);
  while ((found = online(connection)) != ranks && !deadline.passed()) continue;
  REQUIRE(found == ranks);
}

/// Waits until the agents of these ranks are connected.
void until_connected(client::Connection& connection, const std::string& ranks) {
  std::string found;
  const Deadline deadline(patience);
  while (found != ranks && !deadline.passed())
    found = connection.call("resource.peers", json::object(), patience).at("agents");
  REQUIRE(found == ranks);
}

/// The contexts of all events with this name in the log, in order.
std::vector<json> contexts(client::Connection& connection, const std::string& name) {
  std::vector<json> found = events(connection);
  std::erase_if(found, [&](const json& event) { return event.at("name") != name; });
  for (json& event : found) event = json(event.at("context"));
  return found;
}

/// A cluster of two daemons, whose first one leads; three nodes have agents.
struct Monitored {
  Etcd etcd;
  Node first{"a", etcd.toml(), watched};
  Node second{name_after(first, "b"), etcd.toml(), watched};
  std::vector<std::unique_ptr<Process>> agents;

  Monitored() {
    for (const char* host : {"test0", "test1", "test2"}) agents.push_back(agent(both(first, second), host));
    client::Connection connection(first.uri());
    until_online(connection, "0-2");
    // The second daemon follows the first: one that has not seen a leader keeps no node online for it.
    until_serving(second.uri());
    client::Connection standby(second.uri());
    until_online(standby, "0-2");
  }
};

}  // namespace

TEST_SUITE_BEGIN("cluster agents");

TEST_CASE_FIXTURE(Monitored,
                  "after a takeover the nodes that were online are up at once, and stay so if their "
                  "agents come back") {
  first.process().kill();
  agents.at(2)->kill();
  etcd.end_lease("a");
  second.until_leading();
  client::Connection connection(second.uri());
  CHECK(contexts(connection, "restart").back().at("online") == "0-2");
  until_connected(connection, "0-1");
  if (!test::thorough(true, false)) {
    CHECK(online(connection) == "0-2");
    CHECK(contexts(connection, "offline").empty());
    return;
  }
  until_online(connection, "0-1");
  const std::vector<json> offline = contexts(connection, "offline");
  REQUIRE(offline.size() == 1);
  CHECK(offline.front().at("idset") == "2");
}

TEST_CASE_FIXTURE(Monitored, "a hand-over is no outage of the nodes either") {
  first.terminate();
  second.until_leading();
  client::Connection connection(second.uri());
  CHECK(contexts(connection, "restart").back().at("online") == "0-2");
  until_connected(connection, "0-2");
  agents.at(1)->kill();
  until_online(connection, "0,2");
  CHECK(contexts(connection, "offline").size() == 1);
}

TEST_CASE_FIXTURE(Monitored, "nodes that were online before a time without any daemon are offline at first") {
  second.terminate();
  first.kill(etcd);
  while (!etcd.control({"get", "/resourced/leader", "--keys-only"}).empty()) continue;
  for (const auto& running : agents) running->kill();
  second.start();
  second.until_leading();
  client::Connection connection(second.uri());
  CHECK(contexts(connection, "restart").back().at("online") == "");
  CHECK(online(connection) == "");
}

TEST_CASE("agents that know one daemon only report there once it leads") {
  Etcd etcd;
  Node first("a", etcd.toml(), watched);
  Node second(name_after(first, "b"), etcd.toml(), watched);
  const TempDir dir;
  const Process one_agent({RESOURCED_BIN "/resource-agent", "--uri", second.uri(), "--hostname", "test3",
                           "--synthetic", "package:1 core:4 pu:1"},
                          {{}, dir / "log"});
  const Deadline deadline(patience);
  while (read_file(dir / "log").find("does not lead its cluster") == std::string::npos && !deadline.passed())
    continue;
  first.terminate();
  second.until_leading();
  client::Connection connection(second.uri());
  until_online(connection, "3");
}

TEST_SUITE_END();

}  // namespace resourced::e2e

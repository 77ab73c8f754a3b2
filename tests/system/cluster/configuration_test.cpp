// Configurations with which a member cannot lead, and reloads of standbys.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cluster_node.hpp"
#include "harness/ctl.hpp"
#include "shared_etcd.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;

constexpr const char* unknown_host = "[[acquire.partition]]\nname = \"x\"\ntargets = \"nowhere\"\n";

void reload(Node& node, const std::string& configuration) {
  node.dir().write("resourced.toml", configuration);
  node.process().signal(SIGHUP);
}

}  // namespace

TEST_SUITE_BEGIN("cluster configuration");

TEST_CASE("a standby refuses a configuration with which it could not lead") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  Node second("b", etcd.toml());
  until_serving(second.uri());
  const std::string good = read_file(second.dir() / "resourced.toml");
  reload(second, good + "[resource]\nexclude = \"nowhere\"\n");
  until_logged(second, "reload refused, the old configuration stays in force: ");
  until_logged(second, "resource.exclude: ");
  // A leader would refuse these changes, too.
  reload(second, good + "[store]\ndirectory = \"/elsewhere\"\n");
  until_logged(second, "store.directory: cannot change without a restart");
  reload(second, good + "[flux]\nsocket = \"/run/flux\"\n");
  until_logged(second, "resource.config: an inventory cannot be used with flux.socket");
  reload(second, good + "[log]\nlevel = \"debug\"\n");
  until_logged(second, "configuration reloaded");
  second.terminate();
  second.dir().write("resourced.toml", good + unknown_host);
  second.start();
  CHECK(second.process().wait(Deadline(std::chrono::seconds(30))) == 1);
  CHECK(second.log().find("acquire.partition[0].targets") != std::string::npos);
}

// The later standby waits for the length of a lease first, as the other one may have been killed.
TEST_CASE("of two standbys of one name the one that came later ends and says why" * only_thorough()) {
  Etcd etcd;
  Node leader("a", etcd.toml());
  leader.until_leading();
  Node standby("b", etcd.toml());
  const Ctl ctl(leader.uri());
  while (ctl.output({"cluster", "show"}).find(standby.uri()) == std::string::npos) continue;
  Node copy("b", etcd.toml());
  CHECK(copy.process().wait(Deadline(std::chrono::seconds(60))) == 1);
  CHECK(copy.log().find("another daemon of the cluster has the name \"b\": give each one a name of its own "
                        "([cluster] name)") != std::string::npos);
  const std::string shown = ctl.output({"cluster", "show"});
  CHECK(shown.find(standby.uri()) != std::string::npos);
  CHECK(shown.find(copy.uri()) == std::string::npos);
}

TEST_CASE("a daemon that cannot serve does not keep others from leading") {
  Etcd etcd;
  constexpr int lease_ttl = 60;
  // A daemon that waits to lead does not know the inventory, so it cannot check its partitions yet.
  const Node first("a", etcd.toml(), unknown_host, lease_ttl);
  until_logged(first, "acquire.partition[0].targets");
  Node second("b", etcd.toml(), "", lease_ttl);
  second.until_leading();
}

TEST_CASE("a reload that is asked for during a hand-over is made after it") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  Node second("b", etcd.toml());
  until_serving(second.uri());
  client::Connection leader(first.uri());
  while (leader.call("resource.cluster", json::object(), patience).at("members").size() < 2) continue;
  first.dir().write("resourced.toml",
                    read_file(first.dir() / "resourced.toml") + "[log]\nlevel = \"debug\"\n");
  leader.call("resource.hand-over", json::object(), patience);
  first.process().signal(SIGHUP);
  second.until_leading();
  until_logged(first, "configuration reloaded");
}

TEST_CASE("a takeover keeps the inventory that was discovered, also with rediscover") {
  Etcd etcd;
  const auto configured = [&](const char* name) {
    return fmt::format(
        "[resource]\nrediscover = true\nsize = 2\n[monitor]\nmode = \"agents\"\n"
        "[cluster]\netcd = {}\nname = \"{}\"\nlease-ttl = \"{}s\"\n",
        etcd.toml(), name, usual_lease);
  };
  Node first("a", etcd.toml());
  first.until_leading();
  first.terminate();
  etcd.control({"del", "--prefix", "/resourced/"});
  std::filesystem::remove_all(first.dir() / "state");
  first.dir().write("resourced.toml", configured("a"));
  first.start();
  first.until_leading();
  Node second("b", etcd.toml());
  until_serving(second.uri());
  second.terminate();
  second.dir().write("resourced.toml", configured("b"));
  second.start();
  std::vector<std::unique_ptr<Process>> agents;
  for (const char* host : {"n0", "n1"}) {
    agents.push_back(std::make_unique<Process>(
        std::vector<std::string>{RESOURCED_BIN "/resource-agent", "--uri", first.uri(), "--hostname", host,
                                 "--synthetic", "package:1 core:4 pu:1"}));
  }
  client::Connection leader(first.uri());
  const auto hosts_of = [](client::Connection& connection) -> json {
    try {
      const json status = connection.call("resource.status", json::object(), patience);
      return status.at("R").at("execution").at("nodelist");
    } catch (const Error& error) {
      // The agents have not reported yet.
      if (error.errnum() != EAGAIN) throw;
      return nullptr;
    }
  };
  const json before{"n[0-1]"};
  const Deadline deadline(patience);
  while (hosts_of(leader) != before && !deadline.passed()) continue;
  until_serving(second.uri());
  client::Connection standby(second.uri());
  (void)status_after(standby, std::stoi(etcd.control({"get", "/resourced/head", "--print-value-only"})));
  // It would lead with that inventory, and is checked with it.
  second.terminate();
  second.dir().write("resourced.toml", configured("b") + unknown_host);
  second.start();
  CHECK(second.process().wait(Deadline(std::chrono::seconds(30))) == 1);
  CHECK(second.log().find("acquire.partition[0].targets") != std::string::npos);
  second.dir().write("resourced.toml", configured("b"));
  second.start();
  until_serving(second.uri());
  // The agents know only the former leader.
  first.kill(etcd);
  second.until_leading();
  client::Connection next(second.uri());
  CHECK(hosts_of(next) == before);
}

TEST_CASE("a cluster that cannot begin leaves the store as it is") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  first.terminate();
  const auto identity = [&] { return read_file(first.dir() / "state" / "resourced.cluster"); };
  const std::string before = identity();
  const Outcome again = first.run({"--cluster-init"});
  CHECK(again.status == 1);
  CHECK(again.err ==
        "resourced: etcd has a cluster at /resourced/ already, and this store is of it: start without "
        "--cluster-init\n");
  CHECK(identity() == before);
  const std::string configuration = read_file(first.dir() / "resourced.toml");
  first.dir().write("resourced.toml", configuration + "user = \"u\"\npassword-file = \"/nonexistent\"\n");
  CHECK(first.run({"--cluster-init"}).status == 1);
  CHECK(identity() == before);
  first.dir().write("resourced.toml", configuration);
  etcd.kill(0);
  const Outcome unanswered = first.run({"--cluster-init"});
  CHECK(unanswered.status == 1);
  CHECK(unanswered.err.find("etcd does not answer") != std::string::npos);
  CHECK(identity() == before);
}

TEST_SUITE_END();

}  // namespace resourced::e2e

// A parent that dies, restarts with another history, refuses its child or is replaced by another daemon: the
// child continues, and catches up with the changes that it has missed.
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "parent_fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("parent");

TEST_CASE("the parent's death does not stop the child, and its return brings what happened meanwhile") {
  Cluster parent;
  Child child(parent.daemon.uri(), "4-6", "test[4-6]");
  Scheduler inner(child.daemon.uri());
  parent.drain("5");
  CHECK(inner.next() == json{{"down", "1"}});

  for (int i = 0; i < 3; ++i) {
    CAPTURE(i);
    parent.daemon.kill();
    // The child continues to serve, including operators.
    child.ctl.done({"drain", "2", "here"});
    CHECK(inner.next() == json{{"down", "2"}});
    child.ctl.done({"undrain", "2"});
    CHECK(inner.next() == json{{"up", "2"}});
    CHECK(Ctl(child.daemon.uri()).output({"list", "-n", "-o", "{nnodes}", "-s", "down"}) == "1\n");

    parent.daemon.start();
    RawClient again(parent.daemon.uri());
    CHECK(again.call("resource.drain", {{"targets", "4"}}).errnum == 0);
    CHECK(inner.next() == json{{"down", "0"}});
    CHECK(again.call("resource.undrain", {{"targets", "4"}}).errnum == 0);
    CHECK(inner.next() == json{{"up", "0"}});
  }
  parent.daemon.terminate();
  parent.daemon.start();
  CHECK(RawClient(parent.daemon.uri()).call("resource.undrain", {{"targets", "5"}}).errnum == 0);
  CHECK(inner.next() == json{{"up", "1"}});
  CHECK(child.daemon.terminate() == 0);
}

TEST_CASE("a child that starts again takes up what its parent says") {
  Cluster parent;
  Child child(parent.daemon.uri(), "4-6", "test[4-6]");
  // Wait until the child follows: otherwise it may report the target as down and shrunk in two responses.
  until_following(child.daemon, 1);
  {
    Scheduler inner(child.daemon.uri());
    CHECK(parent.operator_client.call("resource.shrink", {{"targets", "6"}}).errnum == 0);
    CHECK(inner.next() == json{{"down", "2"}, {"shrink", "2"}});
    parent.drain("4");
    CHECK(inner.next() == json{{"down", "0"}});
    parent.ctl.done({"expiration", "set", "4000000000"});
    CHECK(inner.next() == json{{"expiration", 4000000000.0}});
  }
  child.daemon.kill();
  child.daemon.start();
  Scheduler inner(child.daemon.uri());
  inner.until_up("1");
  CHECK(inner.first.at("resources").at("execution").at("expiration") == 4000000000.0);
  CHECK(inner.view.targets() == ids("0-1"));
}

TEST_CASE("a history that the parent does not keep is made up for by its status") {
  Cluster parent("[resource]\njournal-max = 5\n" + std::string(eight_nodes));
  parent.drain("5");
  for (int i = 0; i < 10; ++i) {
    parent.drain("0");
    parent.undrain("0");
  }
  Child child(parent.daemon.uri(), "4-6", "test[4-6]");
  Scheduler inner(child.daemon.uri());
  inner.until_up("0,2");
  parent.undrain("5");
  inner.until_up("0-2");
}

TEST_CASE("a parent that has lost sight of a node, and one that is back without its nodes") {
  Cluster parent("[cluster]\ntakeover-grace = 0\n[monitor]\nmode = \"agents\"\ncoalesce = 0\n" +
                 std::string(eight_nodes));
  auto agents = std::make_unique<RawClient>(parent.daemon.uri());
  for (const char* host : {"test4", "test5"}) {
    agents->send("resource.agent", {{"hostname", host}, {"R", json::parse(allocation("0", host))}},
                 wire::flag_streaming);
  }
  Scheduler outer(parent.daemon.uri());
  outer.until_up("4-5");
  Child child(parent.daemon.uri(), "4-6", "test[4-6]", "parent-settle = 0.05");
  Scheduler inner(child.daemon.uri());
  inner.until_up("0-1");
  agents.reset();
  parent.daemon.kill();
  parent.daemon.start();
  inner.until_up("");
}

TEST_CASE("a key that the parent refuses stops nothing, and the right one opens the way") {
  const TempDir keys;
  const auto keygen = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> command{RESOURCED_BIN "/resourcectl", "keygen", keys / name};
    command.insert(command.end(), more.begin(), more.end());
    const Outcome outcome = Process(command).finish();
    REQUIRE(outcome.status == 0);
    return outcome.out;
  };
  keygen("server", {});
  const std::string server_key = keys / "server";
  const std::string known = keygen("child", {"--server-key", server_key});
  keygen("stranger", {"--server-key", server_key});
  const TempDir dir;
  Daemon parent(
      dir, {.config = fmt::format("{}\n[bus]\ncurve-key-file = \"{}\"\n\n{}", eight_nodes, server_key, known),
            .listen = {"tcp://127.0.0.1:*", "ipc://" + (dir / "bus").string()}});
  const std::string ipc = parent.endpoints().at(1);
  CHECK(RawClient(ipc).call("resource.drain", {{"targets", "5"}}).errnum == 0);

  const auto with = [&](const char* name) {
    return fmt::format("parent-key-file = \"{}\"", (keys / name).string());
  };
  Child child(parent.uri(), "4-6", "test[4-6]", with("stranger"));
  Scheduler inner(child.daemon.uri());
  CHECK(inner.first.at("up") == "0-2");
  // Wait until the parent has counted the refused connection.
  RawClient operator_client(ipc);
  while (operator_client.call("resource.stats-get").json().at("refused-connections") == 0) {
  }
  CHECK(child.ctl.output({"info"}) == "3 Nodes, 12 Cores, 0 GPUs\n");
  CHECK(inner.client.settle().empty());
  child.daemon.configure(child.config(parent.uri(), "4-6", "test[4-6]", with("child")));
  child.ctl.done({"reload"});
  inner.until_up("0,2");
}

TEST_CASE("an instance that never had these hosts is not believed") {
  Cluster parent;
  parent.drain("0-7");
  Child child(parent.daemon.uri(), "0-2", "elsewhere[0-2]");
  Scheduler inner(child.daemon.uri());
  // When the child has read the whole journal, it rejects it and requests it again.
  while (parent.operator_client.call("resource.stats-get")
             .json()
             .at("requests")
             .value("resource.journal", json::object())
             .value("succeeded", 0) < 2) {
  }
  CHECK(inner.first.at("up") == "0-2");
  CHECK(inner.client.settle().empty());
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

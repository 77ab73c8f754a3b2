// Schedulers that come back after a loss: `keep` of the configuration, also of one that is read again, what
// operators see meanwhile, and waits for a turn over restarts of the daemon.
#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "client/acquisition.hpp"
#include "client/connection.hpp"
#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

const json token = {{"holder", "00112233445566778899aabbccddeeff"}};

std::string keeping(const std::string& time) {
  return "[acquire]\nkeep = \"" + time + "\"\n" + std::string(eight_nodes);
}

RawResponse acquire(RawClient& client, const json& payload) {
  return client.receive(client.send("resource.acquire", payload, wire::flag_streaming));
}

json holders(Cluster& cluster) { return cluster.operator_client.call("resource.peers").json()["holders"]; }

/// Lets a scheduler with a token acquire and lose its connection. Returns the holders once the daemon has
/// noticed that: with `kept-until`, or none.
json holders_after_loss(Cluster& cluster) {
  {
    RawClient client(cluster.daemon.uri());
    CHECK(acquire(client, token).json()["up"] == "0-7");
  }
  for (const Deadline deadline;;) {
    json all = holders(cluster);
    if (all.empty() || all.at(0).contains("kept-until")) return all;
    if (deadline.passed()) throw Timeout("the daemon has not noticed the loss");
  }
}

/// A scheduler of the client library that waits for its turn.
struct Waiter : client::AcquisitionObserver {
  explicit Waiter(const std::string& uri) : connection(uri) {
    client::AcquisitionOptions options;
    options.wait = true;
    acquisition.emplace(connection, *this, options);
  }
  void on_resources(const rset::ResourceSet& /*resources*/, const text::IdSet& up) override {
    seen.push_back("up " + up.encode());
  }
  void on_lost(const Error& /*why*/) override { seen.emplace_back("lost"); }
  void on_error(const Error& why) override { seen.emplace_back(why.what()); }

  [[nodiscard]] std::string last() const { return seen.empty() ? "" : seen.back(); }
  [[nodiscard]] bool holds() const { return acquisition->state() == client::Acquisition::State::held; }

  client::Connection connection;
  std::vector<std::string> seen;
  std::optional<client::Acquisition> acquisition;
};

TEST_SUITE_BEGIN("resume");

TEST_CASE("keep takes effect by a reload, in both directions") {
  Cluster cluster;
  const auto reload = [&](const std::string& config) {
    cluster.daemon.configure(config);
    cluster.ctl.done({"reload"});
  };
  CHECK(holders_after_loss(cluster).empty());

  reload(keeping("1h"));
  const json kept = holders_after_loss(cluster);
  REQUIRE(kept.size() == 1);
  const double until = kept[0]["kept-until"];
  CHECK(until >= kept[0]["since"].get<double>() + 3600);
  RawClient other(cluster.daemon.uri());
  CHECK(acquire(other, json::object()).errnum == wire_errno::busy);

  // Resources that are kept already stay so for their time; after a later loss they are free at once.
  reload(keeping("0s"));
  CHECK(holders(cluster) == kept);
  CHECK(holders_after_loss(cluster).empty());
  CHECK(acquire(other, json::object()).json()["up"] == "0-7");
}

TEST_CASE("keep takes effect for a scheduler that has acquired before the reload") {
  Cluster cluster;
  std::optional<RawClient> client(std::in_place, cluster.daemon.uri());
  CHECK(acquire(*client, token).json()["up"] == "0-7");
  cluster.daemon.configure(keeping("1h"));
  cluster.daemon.hang_up();
  client.reset();
  for (const Deadline deadline; !holders(cluster).at(0).contains("kept-until");)
    REQUIRE_FALSE(deadline.passed());
  RawClient again(cluster.daemon.uri());
  CHECK(acquire(again, token).json()["up"] == "0-7");
}

TEST_CASE("status and reload tell that targets wait for a lost holder as long as they are kept for it") {
  const auto config = [](const char* properties) {
    return std::string("[[resource.config]]\nhosts = \"test[0-3]\"\ncores = \"0-3\"\n") +
           "[[resource.config]]\nhosts = \"test[4-7]\"\ncores = \"0-3\"\nproperties = [" + properties +
           "]\n[acquire]\nkeep = \"1h\"\n[[acquire.partition]]\nname = \"debug\"\nconstraint = \"debug\"\n";
  };
  Cluster cluster(config(R"("debug")"));
  json wanted = token;
  wanted["partition"] = "debug";
  RawClient rest(cluster.daemon.uri());
  CHECK(acquire(rest, json::object()).json()["up"] == "0-3");
  {
    RawClient debug(cluster.daemon.uri());
    CHECK(acquire(debug, wanted).json()["up"] == "4-7");
  }
  const auto debug_holder = [&] { return holders(cluster).at(1); };
  for (const Deadline deadline; !debug_holder().contains("kept-until");) REQUIRE_FALSE(deadline.passed());

  cluster.daemon.configure(config(""));
  const std::string told =
      "targets 4-7 wait to move from partition debug to the rest: the holder of partition debug must release "
      "them\n";
  CHECK(cluster.ctl.output({"reload"}) == "reloaded the configuration\n" + told);
  CHECK(cluster.ctl.output({"status"}).ends_with(told));
  // An operator need not wait until the time is over.
  cluster.ctl.done({"evict", "--partition", "debug"});
  CHECK(cluster.ctl.output({"status"})
            .ends_with("targets 4-7 wait for the holder of the rest to acquire again\n"));
}

TEST_CASE("an acquisition that waits for its turn waits again after a restart of the daemon") {
  Cluster cluster;
  std::optional<Waiter> one(std::in_place, cluster.daemon.uri());
  std::optional<Waiter> two(std::in_place, cluster.daemon.uri());
  const auto pump_until = [&](const auto& condition) {
    for (const Deadline deadline; !condition();) {
      if (deadline.passed()) throw Timeout("the schedulers did not do what the test waits for");
      for (auto* each : {&one, &two}) {
        if (*each) (*each)->connection.run_for(client::Milliseconds(5));
      }
    }
  };
  const auto one_holds = [&] {
    RawClient client(cluster.daemon.uri());
    const json peers = client.call("resource.peers").json();
    return peers["holders"].size() == 1 && peers.value("waiting", json::array()).size() == 1 &&
           one->holds() != two->holds();
  };
  pump_until(one_holds);
  for (const bool is_killed : {true, false}) {
    if (is_killed) {
      cluster.daemon.kill();
    } else {
      REQUIRE(cluster.daemon.terminate() == 0);
    }
    pump_until([&] { return one->last() == "lost" && two->last() == "lost"; });
    cluster.daemon.start();
    // Either one may come first.
    pump_until(one_holds);
  }
  std::optional<Waiter>& holder = one->holds() ? one : two;
  const std::optional<Waiter>& waiter = one->holds() ? two : one;
  holder.reset();
  pump_until([&] { return waiter->holds(); });
  CHECK(waiter->last() == "up 0-7");
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

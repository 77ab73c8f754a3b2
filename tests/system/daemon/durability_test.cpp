// Answered requests and sent updates survive kill -9 of the daemon, and the former holder acquires the
// resources again.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "client/acquisition.hpp"
#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

constexpr std::string_view nodes_256 = R"([[resource.config]]
hosts = "node[0-255]"
cores = "0-7"
)";

/// A client with drains that are not answered yet, and the rank of each.
struct Drainer {
  explicit Drainer(const std::string& uri) : client(uri) {}
  RawClient client;
  std::map<std::uint32_t, unsigned> requests;
};

std::string reason_of(unsigned rank) { return "reason of " + std::to_string(rank); }

TEST_SUITE_BEGIN("durability");

TEST_CASE("every answered drain and everything told to a scheduler survives kill -9") {
  constexpr unsigned clients = 8;
  constexpr unsigned drains_each = 30;
  for (const std::size_t answers : {1U, 20U, 100U, clients * drains_each}) {
    CAPTURE(answers);
    Cluster cluster(nodes_256);
    RawClient scheduler(cluster.daemon.uri());
    const std::uint32_t stream = scheduler.acquire();
    SchedulerView view;
    view.apply(scheduler.receive(stream).json());

    std::vector<std::unique_ptr<Drainer>> drainers;
    for (unsigned c = 0; c < clients; ++c) {
      auto& drainer = *drainers.emplace_back(std::make_unique<Drainer>(cluster.daemon.uri()));
      for (unsigned i = 0; i < drains_each; ++i) {
        const unsigned rank = c * drains_each + i;
        const json payload{{"targets", std::to_string(rank)}, {"reason", reason_of(rank)}};
        drainer.requests.emplace(drainer.client.send("resource.drain", payload), rank);
      }
    }

    std::set<unsigned> answered;
    const auto take_answers = [&](Drainer& drainer) {
      return [&](const RawResponse& response) {
        CHECK(response.errnum == 0);
        answered.insert(drainer.requests.at(response.matchtag));
      };
    };
    while (answered.size() < answers) {
      for (const auto& drainer : drainers) take_arrived(drainer->client, take_answers(*drainer));
    }
    cluster.daemon.kill();
    for (const auto& drainer : drainers) take_arrived(drainer->client, take_answers(*drainer));
    take_arrived(scheduler, [&](const RawResponse& response) { view.apply(response.json()); });

    cluster.daemon.start();
    std::set<unsigned> kept;
    const json status = RawClient(cluster.daemon.uri()).call("resource.status").json();
    for (const auto& [targets, why] : status["drain"].items()) {
      for (const unsigned rank : ids(targets)) {
        kept.insert(rank);
        CHECK(why["reason"] == reason_of(rank));
      }
    }
    for (const unsigned rank : answered) CHECK(kept.contains(rank));
    for (const unsigned rank : kept) CHECK(rank < clients * drains_each);
    for (const unsigned rank : view.targets()) CHECK((view.up().contains(rank) || kept.contains(rank)));
  }
}

TEST_CASE("drains from several commands at once are all kept") {
  constexpr unsigned operators = 8;
  Cluster cluster(nodes_256);
  std::vector<std::unique_ptr<Process>> commands;
  for (unsigned i = 0; i < operators; ++i) {
    commands.push_back(cluster.ctl.start(
        {"drain", std::to_string(10 * i) + "-" + std::to_string(10 * i + 4), "operator", std::to_string(i)}));
  }
  for (const auto& command : commands) {
    const Outcome outcome = command->finish();
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
  }
  cluster.daemon.kill();
  cluster.daemon.start();
  const json drained = cluster.status()["drain"];
  CHECK(drained.size() == operators);
  for (unsigned i = 0; i < operators; ++i) {
    const std::string targets = std::to_string(10 * i) + "-" + std::to_string(10 * i + 4);
    CHECK(drained.value(targets, json::object()).value("reason", "") == "operator " + std::to_string(i));
  }
}

TEST_CASE("undrain, properties and expiration are kept too, over any number of restarts") {
  Cluster cluster;
  cluster.drain("1-3", "disk");
  cluster.undrain("2");
  cluster.ctl.done({"property", "add", "fast", "4-5"});
  cluster.ctl.done({"expiration", "set", "4102444800"});
  const json drained = cluster.status()["drain"];
  CHECK(drained.contains("1,3"));
  for (int restart = 0; restart < 3; ++restart) {
    CAPTURE(restart);
    if (restart == 1) {
      CHECK(cluster.daemon.terminate() == 0);
    } else {
      cluster.daemon.kill();
    }
    cluster.daemon.start();
    CHECK(cluster.status()["drain"] == drained);
    RawClient scheduler(cluster.daemon.uri());
    const json first = scheduler.receive(scheduler.acquire()).json();
    CHECK(first["up"] == "0,2,4-7");
    CHECK(first["resources"]["execution"]["properties"] == json::parse(R"({"fast": "4-5"})"));
    CHECK(first["resources"]["execution"]["expiration"] == 4102444800.0);
  }
}

/// Ends the run() of its connection after each first response.
class Observer : public client::AcquisitionObserver {
 public:
  explicit Observer(client::Connection& connection) : connection_(connection) {}

  void on_resources(const rset::ResourceSet& /*resources*/, const text::IdSet& up) override {
    pictures.push_back(up.encode());
    connection_.stop();
  }
  void on_down(const text::IdSet& ranks) override {
    down = ranks.encode();
    connection_.stop();
  }
  void on_lost(const Error& /*why*/) override { ++losses; }
  void on_error(const Error& why) override {
    failure = why.what();
    connection_.stop();
  }

  std::vector<std::string> pictures;
  std::string down;
  std::string failure;
  int losses = 0;

 private:
  client::Connection& connection_;
};

TEST_CASE("the client library acquires again by itself when the daemon is back") {
  Cluster cluster;
  client::Connection connection(cluster.daemon.uri());
  Observer observer(connection);
  const client::Acquisition acquisition(connection, observer);
  const auto next_event = [&] { REQUIRE(connection.run_for(std::chrono::seconds(30))); };

  next_event();
  CHECK(observer.pictures == std::vector<std::string>{"0-7"});
  cluster.drain("6");
  next_event();
  CHECK(observer.down == "6");

  cluster.daemon.kill();
  cluster.daemon.start();
  next_event();
  CHECK(observer.failure.empty());
  CHECK(observer.losses == 1);
  CHECK(observer.pictures == std::vector<std::string>{"0-7", "0-5,7"});

  // The client holds the resources again: others are refused, and it receives changes.
  RawClient other(cluster.daemon.uri());
  CHECK(other.receive(other.acquire()).errnum == wire_errno::busy);
  other.call("resource.drain", {{"targets", "0"}});
  next_event();
  CHECK(observer.down == "0");
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e

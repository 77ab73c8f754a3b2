// Three daemons and three members of etcd under load: leaders are killed, paused, stopped and asked to hand
// over, and members of etcd are killed. Each answered change must be in the log exactly once and in order,
// any other one at most once, and the logs of all daemons must be equal.
#include <array>
#include <csignal>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
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

class Storm {
 public:
  Storm() {
    for (const char* name : {"a", "b", "c"})
      nodes_.push_back(std::make_unique<Node>(name, etcd_.toml(), "", 3));
    connection_ = std::make_unique<client::Connection>(nodes_[0]->uri() + "," + nodes_[1]->uri() + "," +
                                                       nodes_[2]->uri());
  }

  // Keeps a number of requests under way until so many more are answered.
  void load(std::size_t answers) {
    wanted_ = answered_.size() + answers;
    while (under_way_ < most_under_way) send();
    REQUIRE(connection_->run_for(patience));
  }

  void drain_out() {
    wanted_ = std::size_t(-1);
    stops_ = true;
    if (under_way_ > 0) REQUIRE(connection_->run_for(patience));
  }

  Node& leader() {
    while (true) {
      const std::string value = etcd_.control({"get", "/resourced/leader", "--print-value-only"});
      if (value.size() < 3) continue;
      return *nodes_.at(
          static_cast<std::size_t>(json::parse(value).at("name").get<std::string>().at(0) - 'a'));
    }
  }
  Node& another_than(const Node& former) {
    while (true) {
      Node& next = leader();
      if (&next != &former) return next;
    }
  }

  void judge() {
    drain_out();
    compare_pictures();
    std::vector<std::string> log;
    std::set<Node*> asked;
    while (asked.size() < nodes_.size()) {
      Node& node = leader();
      if (!asked.insert(&node).second) break;
      client::Connection connection(node.uri() + "," +
                                    node.uri());  // named twice: connect() waits until the daemon listens
      const std::vector<std::string> found = reasons(connection);
      if (log.empty()) log = found;
      CHECK(found == log);
      node.terminate();
    }
    CHECK(asked.size() == nodes_.size());
    std::map<std::string, std::size_t> places;
    for (const std::string& reason : log) {
      INFO(reason);
      CHECK(places.emplace(reason, places.size()).second);
      CHECK(sent_.contains(reason));
    }
    std::size_t last = 0;
    for (const std::string& reason : answered_) {
      INFO(reason);
      REQUIRE(places.contains(reason));
      CHECK(places[reason] >= last);
      last = places[reason];
    }
    MESSAGE(answered_.size(), " answered, ", sent_.size() - answered_.size(), " not");
  }

  Etcd& etcd() { return etcd_; }

 private:
  static constexpr std::size_t most_under_way = 16;

  // Compares the status of each standby with that of the leader.
  void compare_pictures() {
    Node& leading = leader();
    until_serving(leading.uri());
    json expected = client::Connection(leading.uri()).call("resource.status", json::object(), patience);
    expected.erase("unchecked");
    // Only a standby has the key, and this daemon may be about to take over.
    expected.erase("sequence");
    const int head = std::stoi(etcd_.control({"get", "/resourced/head", "--print-value-only"}));
    for (const auto& node : nodes_) {
      if (node.get() == &leading) continue;
      until_serving(node->uri());
      client::Connection standby(node->uri());
      json found = status_after(standby, head);
      found.erase("sequence");
      CHECK(found == expected);
    }
  }

  void send() {
    const std::string reason = fmt::format("r{}", sent_.size());
    sent_.insert(reason);
    ++under_way_;
    connection_->send(
        "resource.drain",
        {{"targets", fmt::format("{}", sent_.size() % 8)}, {"reason", reason}, {"mode", "overwrite"}},
        [this, reason](const client::Response& response) {
          --under_way_;
          if (response.ok()) answered_.push_back(reason);
          if (stops_ ? under_way_ == 0 : answered_.size() >= wanted_) return connection_->stop();
          if (!stops_) send();
        });
  }

  Etcd etcd_{{.members = 3}};
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unique_ptr<client::Connection> connection_;
  std::set<std::string> sent_;
  std::vector<std::string> answered_;
  std::size_t under_way_ = 0;
  std::size_t wanted_ = 0;
  bool stops_ = false;
};

}  // namespace

TEST_SUITE_BEGIN("cluster storm");

TEST_CASE("whatever fails under load, each answered change is in all logs exactly once" * only_thorough()) {
  Storm storm;
  storm.load(100);
  // A round takes 12 to 30 s: a lease of 3 s has to end twice. tests/system/cluster_net has longer storms.
  for (int round = 0; round < 2; ++round) {
    CAPTURE(round);
    {
      Node& leader = storm.leader();
      leader.kill(storm.etcd());
      storm.load(100);
      leader.start();
    }
    {
      Node& leader = storm.leader();
      leader.pause(storm.etcd());
      (void)storm.another_than(leader);
      storm.load(100);
      leader.process().signal(SIGCONT);
      until_following(leader.uri());
      storm.load(50);
    }
    {
      Node& leader = storm.leader();
      const Outcome outcome = Ctl(leader.uri()).run({"cluster", "hand-over"});
      INFO(outcome.err);
      // On a busy machine another daemon than the successor may lead next.
      CHECK((outcome.status == 0 || outcome.err.find("did not take over in time") != std::string::npos));
      storm.load(50);
    }
    {
      const auto member = static_cast<std::size_t>(round) % 3;
      storm.etcd().kill(member);
      storm.load(100);
      storm.etcd().start(member);
    }
    {
      Node& leader = storm.leader();
      leader.terminate();
      storm.load(100);
      leader.start();
    }
  }
  storm.judge();
}

TEST_SUITE_END();

}  // namespace resourced::e2e

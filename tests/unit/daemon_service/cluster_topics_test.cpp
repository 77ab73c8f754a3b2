// resource.leader, resource.cluster and resource.hand-over, with an etcd that answers when the test says so.
#include <cerrno>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <doctest/doctest.h>

#include "client/repeatable.hpp"
#include "daemon/service/topics.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;
using service::ClusterTopics;
using Roster = ::resourced::cluster::Roster;
using Answer = std::variant<Roster, Error>;

struct LeaderStand : Stand, private service::Leadership {
  [[nodiscard]] std::string name() const override { return "a"; }
  [[nodiscard]] proto::topics::Term term() const override { return {7, "c1"}; }
  [[nodiscard]] bool may_serve() const override { return is_serving; }
  void ask_roster(TakeRoster take) override { questions.push_back(std::move(take)); }
  void hand_over(const std::string& successor) override { handed_over.push_back(successor); }
  [[nodiscard]] std::optional<std::string> stalled() const override { return why_stalled; }

  LeaderStand() {
    leadership = this;
    restart();
  }

  void answer(const Answer& roster) {
    REQUIRE_FALSE(questions.empty());
    const auto take = std::move(questions.front());
    questions.pop_front();
    take(roster);
    settle();
  }

  static Roster both() {
    Roster roster;
    roster.head = 30;
    roster.members = {{"a", "tcp://a", "1.0", 29}, {"b", "tcp://b", "", 28}};
    return roster;
  }

  bool is_serving = true;
  std::deque<TakeRoster> questions;
  std::vector<std::string> handed_over;
  std::optional<std::string> why_stalled;
};

}  // namespace

TEST_SUITE_BEGIN("topics of a cluster");

TEST_CASE("clients of a cluster know which topics are changes, and which questions") {
  // Topics that are neither: they have another kind of answer, or concern the daemon or the connection that
  // is asked.
  const std::set<std::string_view> others{
      "resource.acquire",        "resource.acquire-cancel", "resource.acquire-mute",   "resource.journal",
      "resource.journal-cancel", "resource.agent",          "resource.agent-cancel",   "resource.agent-beat",
      "resource.agent-health",   "resource.disconnect",     "resource.monitor-waitup", "resource.wait",
      "resource.wait-cancel",    "resource.stats-clear",    "resource.leader",         "resource.hand-over",
      "resource.acquire-renew"};
  for (const service::Topic& topic : service::Topics::all()) {
    CAPTURE(topic.name);
    const bool is_change = topic.needs == service::Needs::commits;
    CHECK(client::is_change(topic.name) == is_change);
    CHECK(client::is_question(topic.name) == (!is_change && !others.contains(topic.name)));
  }
}

TEST_CASE("a daemon on its own is in no cluster") {
  Stand stand;
  const auto client = stand.connect();
  CHECK(stand.call(client, "resource.leader").text() == "{}");
  for (const char* topic : {"resource.cluster", "resource.hand-over"}) {
    const proto::Message refused = stand.call(client, topic);
    CHECK(refused.errnum() == ENOENT);
    CHECK(refused.text() == "this daemon is in no cluster");
  }
  stand.request(client, "resource.acquire", nullptr, streaming);
  CHECK_FALSE(stand.receive_json(client).contains("epoch"));
}

TEST_CASE_FIXTURE(LeaderStand,
                  "a leader tells its epoch and cluster to those who look for it, and to schedulers") {
  const auto client = connect({4711, 4711, {}, {}});
  CHECK(call(client, "resource.leader").text() == R"({"epoch":7,"cluster":"c1"})");
  const auto scheduler = connect();
  request(scheduler, "resource.acquire", nullptr, streaming);
  const json first = receive_json(scheduler);
  CHECK(first["epoch"] == 7);
  CHECK(first["cluster"] == "c1");
}

TEST_CASE_FIXTURE(LeaderStand, "metrics show the epoch, which is 0 for a daemon on its own") {
  const auto sample_of = [](Stand& stand) {
    const std::string text = json::parse(stand.call(stand.connect(), "resource.metrics").text())["text"];
    const std::size_t begin = text.find("\nresourced_cluster_epoch ");
    REQUIRE(begin != std::string::npos);
    return text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
  };
  CHECK(sample_of(*this) == "resourced_cluster_epoch 7");
  Stand alone;
  CHECK(sample_of(alone) == "resourced_cluster_epoch 0");
}

TEST_CASE_FIXTURE(LeaderStand, "the members are those of etcd") {
  const auto client = connect();
  request(client, "resource.cluster");
  CHECK(silent(client));
  answer(both());
  CHECK(receive_json(client) ==
        json{{"name", "a"},
             {"epoch", 7},
             {"head", 30},
             {"members",
              {{{"name", "a"}, {"uri", "tcp://a"}, {"version", "1.0"}, {"applied", 29}},
               {{"name", "b"}, {"uri", "tcp://b"}, {"version", ""}, {"applied", 28}}}}});
}

TEST_CASE_FIXTURE(LeaderStand,
                  "the groups in which files differ from the leader's are told, if they are known") {
  const auto client = connect();
  Roster roster = both();
  roster.leader = {"b", "tcp://b", "p", 7};
  roster.members[0].files = {"1", "2", "3", "4", "5"};
  roster.members[1].files = {"1", "x", "3", "4", "y"};
  roster.members.push_back({"c", "tcp://c", "", 28});
  request(client, "resource.cluster");
  answer(roster);
  const json members = receive_json(client)["members"];
  CHECK(members[0]["differs"] == json{"exclude", "access"});
  CHECK(members[1]["differs"] == json::array());
  CHECK_FALSE(members[2].contains("differs"));
}

TEST_CASE_FIXTURE(LeaderStand, "an etcd that does not answer is told, and nothing is handed over") {
  const auto client = connect();
  for (const char* topic : {"resource.cluster", "resource.hand-over"}) {
    request(client, topic);
    answer(Error(EAGAIN, "etcd has not answered: no route"));
    const proto::Message refused = receive(client);
    CHECK(refused.errnum() == EAGAIN);
    CHECK(refused.text() == "etcd has not answered: no route");
  }
  CHECK(handed_over.empty());
}

TEST_CASE_FIXTURE(LeaderStand, "the answer names the successor, and then it is handed over") {
  const auto client = connect();
  request(client, "resource.hand-over", {{"to", "b"}});
  answer(both());
  CHECK(receive_json(client) == json{{"to", "b"}, {"uri", "tcp://b"}});
  request(client, "resource.hand-over");
  answer(both());
  CHECK(receive_json(client)["to"] == "b");
  CHECK(handed_over == std::vector<std::string>{"b", "b"});
}

TEST_CASE_FIXTURE(LeaderStand, "a successor that is not there is refused, and so is a bad request") {
  const auto client = connect();
  request(client, "resource.hand-over", {{"to", "c"}});
  answer(both());
  CHECK(receive(client).errnum() == ENOENT);
  request(client, "resource.hand-over", {{"to", "a"}});
  answer(both());
  CHECK(receive(client).errnum() == EINVAL);
  CHECK(call(client, "resource.hand-over", {{"to", 1}}).errnum() == EPROTO);
  CHECK(questions.empty());
  CHECK(handed_over.empty());
}

TEST_CASE_FIXTURE(LeaderStand, "a client that is gone hands nothing over") {
  const auto client = connect();
  request(client, "resource.hand-over");
  disconnect(client);
  answer(both());
  CHECK(handed_over.empty());
  CHECK(silent(client));
}

TEST_CASE_FIXTURE(LeaderStand, "no user can make others wait for etcd without end") {
  const auto client = connect();
  for (std::size_t i = 0; i < ClusterTopics::most_of_one; ++i) request(client, "resource.cluster");
  CHECK(silent(client));
  CHECK(call(client, "resource.cluster").errnum() == EBUSY);
  const auto other = connect({4711, 4711, {}, {}});
  request(other, "resource.cluster");
  for (std::size_t i = 0; i <= ClusterTopics::most_of_one; ++i) answer(both());
  CHECK(receive_json(other)["name"] == "a");
  CHECK(transport.sent[client].size() == ClusterTopics::most_of_one);
}

TEST_CASE_FIXTURE(LeaderStand,
                  "while commits stall, changes are refused at once and everything else is served") {
  const auto client = connect();
  const json status = json::parse(call(client, "resource.status").text());
  why_stalled = "etcd is slow";
  const struct {
    const char* topic;
    json payload;
  } changes[] = {
      {"resource.drain", {{"targets", "0"}, {"reason", "bad"}}},
      {"resource.undrain", {{"targets", "0"}}},
      {"resource.drain-cancel", {{"targets", "0"}}},
      {"resource.property", {{"op", "add"}, {"name", "p"}, {"targets", "0"}}},
      {"resource.expiration", {{"expiration", 1e9}}},
      {"resource.expiration-update", {{"expiration", 1e9}}},
      {"resource.shrink", {{"targets", "0"}}},
      {"resource.unshrink", {{"targets", "0"}}},
      {"resource.forget", {{"hosts", "n9"}}},
      {"resource.alloc", {{"id", "j"}}},
      {"resource.alloc-update", {{"id", "j"}, {"note", "x"}}},
      {"resource.free", {{"id", "j"}}},
      {"resource.force-free", {{"id", "j"}}},
      {"resource.reload", {{"path", "/R"}}},
      {"resource.monitor-force-down", {{"ranks", "0"}}},
  };
  for (const auto& [topic, payload] : changes) {
    CAPTURE(topic);
    request(client, topic, payload);
    // The change is refused within the call: it does not wait for the log.
    REQUIRE_FALSE(silent(client));
    const proto::Message refused = receive(client);
    CHECK(refused.errnum() == EAGAIN);
    CHECK(refused.text() == "etcd is slow");
  }
  CHECK(json::parse(call(client, "resource.status").text()) == status);
  CHECK(call(client, "resource.ready").text() == "etcd is slow");
  request(client, "resource.acquire", nullptr, streaming);
  CHECK(receive_json(client).contains("resources"));
  why_stalled.reset();
  CHECK(call(client, "resource.drain", {{"targets", "0"}, {"reason", "bad"}}).errnum() == 0);
}

TEST_CASE_FIXTURE(LeaderStand, "a leader that may not serve answers nobody") {
  const auto client = connect();
  is_serving = false;
  request(client, "resource.leader");
  settle();
  CHECK(silent(client));
}

// The daemon loses its lease while the store reads a page of the log for the request.
TEST_CASE_FIXTURE(LeaderStand, "a leader that may not serve any more ends no question that it had") {
  const auto client = connect();
  request(client, "resource.journal", nullptr, streaming);
  is_serving = false;
  settle();
  catch_up();
  CHECK(silent(client));
}

TEST_CASE_FIXTURE(LeaderStand,
                  "a leader that may not serve any more reads no further for one that was slow") {
  const auto client = connect();
  request(client, "resource.journal", nullptr, streaming);
  settle();
  while (!silent(client)) (void)receive(client);
  transport.full.insert(client);
  for (const char* target : {"0", "1", "2"}) call(connect(), "resource.drain", {{"targets", target}});
  transport.full.clear();
  is_serving = false;
  service->on_writable();
  std::size_t told = 0;
  for (; !silent(client); ++told) CHECK(receive_json(client)["events"].size() == 1);
  // One event was encoded before, and may still leave.
  CHECK(told <= 1);
  is_serving = true;
  service->on_writable();
  CHECK_FALSE(silent(client));
}

TEST_SUITE_END();

}  // namespace resourced::daemon::test

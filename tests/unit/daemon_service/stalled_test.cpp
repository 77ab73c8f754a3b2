// Reads while events wait for their commit: they show the committed state at once. Also when the log of a
// leader commits nothing for long.
#include <cerrno>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "core/constraint/query.hpp"
#include "core/rset/resource_set.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;
using text::IdSet;

/// A log that can hold events back; its store gets them only once they are committed, as that of a leader.
class HeldLog final : public log::EventLog {
 public:
  explicit HeldLog(log::Store& store) : store_(store) {}

  void hold() { holds_ = true; }
  void release() {
    holds_ = false;
    for (log::Record& record : std::exchange(held_, {})) store_.append(std::move(record));
  }

  [[nodiscard]] log::Sequence last_sequence() const noexcept override { return store_.last_sequence(); }
  [[nodiscard]] bool is_numbered() const noexcept override { return true; }
  [[nodiscard]] WallTime last_timestamp() const noexcept override { return store_.last_timestamp(); }
  void append(log::Record record) override {
    holds_ ? held_.push_back(std::move(record)) : store_.append(std::move(record));
  }
  void ask(log::Question question) override { store_.ask(std::move(question)); }
  [[nodiscard]] Counters counters() const override { return store_.counters(); }

 private:
  log::Store& store_;
  bool holds_ = false;
  std::deque<log::Record> held_;
};

/// A leader with a committed drain of rank 1, and a drain of rank 2 that is not committed, whose client
/// waits.
struct StalledStand : Stand, private service::Leadership {
  [[nodiscard]] std::string name() const override { return "a"; }
  [[nodiscard]] proto::topics::Term term() const override { return {7, "cluster"}; }
  [[nodiscard]] bool may_serve() const override { return true; }
  void ask_roster(TakeRoster take) override { questions.push_back(std::move(take)); }
  void hand_over(const std::string& /*successor*/) override {}
  [[nodiscard]] std::optional<std::string> stalled() const override { return why_stalled; }

  StalledStand() {
    leadership = this;
    over_store = [this](log::Store& store) {
      auto made = std::make_unique<HeldLog>(store);
      held = made.get();
      return made;
    };
    restart();
    operator_ = connect();
    const auto client = connect();
    REQUIRE(call(client, "resource.drain", {{"targets", "1"}, {"reason", "before"}}).errnum() == 0);
    before = committed;
    held->hold();
    request(operator_, "resource.drain", {{"targets", "2"}, {"reason", "stuck"}});
    REQUIRE(silent(operator_));
  }
  void stall() { why_stalled = "etcd is slow"; }
  void go_on() {
    why_stalled.reset();
    held->release();
    settle();
  }
  proto::Message answer_to(proto::ClientId client) {
    while (silent(client)) step();
    return receive(client);
  }
  proto::Message ask(proto::ClientId client, const std::string& topic, const json& payload = nullptr) {
    request(client, topic, payload);
    return answer_to(client);
  }
  json read(const std::string& topic, const json& payload = nullptr) {
    const proto::Message answer = ask(connect(), topic, payload);
    REQUIRE(answer.errnum() == 0);
    return json::parse(answer.text());
  }

  HeldLog* held = nullptr;
  std::optional<std::string> why_stalled;
  std::deque<TakeRoster> questions;
  log::Sequence before = 0;
  proto::ClientId operator_{};
};

}  // namespace

TEST_SUITE_BEGIN("reads and commits");

TEST_CASE_FIXTURE(StalledStand,
                  "a change that is read beside the loop is refused if the log stalls by then") {
  go_on();
  const auto scheduler = connect();
  request(scheduler, "resource.acquire", nullptr, streaming);
  REQUIRE(answer_to(scheduler).errnum() == 0);
  const json payload{
      {"id", "j"},
      {"R",
       {{"version", 1},
        {"execution", {{"R_lite", {{{"rank", "3"}, {"children", {{"core", "0"}}}}}}, {"nodelist", {"n3"}}}}}},
      {"x", std::string(65536, 'x')}};
  request(scheduler, "resource.alloc", payload);
  stall();
  const proto::Message refused = answer_to(scheduler);
  CHECK(refused.errnum() == EAGAIN);
  CHECK(refused.text() == "etcd is slow");
  // It is not read while the log stalls already.
  request(scheduler, "resource.alloc", payload);
  CHECK(receive(scheduler).text() == "etcd is slow");
  go_on();
  CHECK(ask(scheduler, "resource.alloc", payload).errnum() == 0);
}

TEST_CASE_FIXTURE(StalledStand, "a read shows the committed state at once") {
  const auto reader = connect();
  const auto ask_now = [&](const std::string& topic, const json& payload = nullptr) {
    request(reader, topic, payload);
    REQUIRE_FALSE(silent(reader));
    return receive_json(reader);
  };
  const json status = ask_now("resource.status");
  REQUIRE(status["drain"].size() == 1);
  CHECK(status["drain"]["1"]["reason"] == "before");
  // It is the answer that all clients got before the change.
  CHECK_FALSE(status.contains("sequence"));
  const json view = ask_now("resource.sched-status");
  CHECK(rset::ResourceSet::from_json(view["down"]).ranks() == IdSet{1});
  CHECK(rset::ResourceSet::from_json(view["all"]).ranks() == IdSet::range(0, 7));
  CHECK(rset::ResourceSet::from_json(ask_now("resource.get")["R"]).ranks() == IdSet::range(0, 7));
  CHECK(ask_now("attr.get", {{"name", "hostlist"}})["value"] == "n[0-7]");
  CHECK(ask_now("resource.allocations")["allocations"].empty());
  CHECK(ask_now("resource.metrics")["text"].get<std::string>().find(
            "resourced_nodes_state{state=\"drained\",partition=\"\"} 1\n") != std::string::npos);
  CHECK(ask_now("resource.ping", {{"seq", 1}}).at("seq") == 1);
  CHECK(silent(operator_));
  go_on();
  CHECK(receive(operator_).errnum() == 0);
  CHECK(ask_now("resource.status")["drain"].size() == 2);
}

TEST_CASE_FIXTURE(StalledStand, "a read waits for the changes that its own client has sent before") {
  request(operator_, "resource.status");
  request(operator_, "resource.get");
  CHECK(silent(operator_));
  // An answer that shows no state does not wait.
  request(operator_, "resource.ping", {{"seq", 1}});
  CHECK(receive_json(operator_).at("seq") == 1);
  CHECK(silent(operator_));
  go_on();
  CHECK(receive(operator_).errnum() == 0);
  CHECK(receive_json(operator_)["drain"].size() == 2);
  CHECK(receive_json(operator_).contains("R"));
}

TEST_CASE_FIXTURE(StalledStand, "a status with partitions waits for changes of the inventory") {
  go_on();
  partitions.push_back({"fast", std::nullopt, constraint::parse_query("fast")});
  restart();
  held->hold();
  const auto changer = connect();
  const auto reader = connect();
  request(changer, "resource.drain", {{"targets", "4"}, {"reason", "x"}});
  request(reader, "resource.status");
  CHECK(receive_json(reader)["drain"].size() == 2);
  request(changer, "resource.property", {{"op", "add"}, {"name", "fast"}, {"targets", "3"}});
  request(reader, "resource.status");
  CHECK(silent(reader));
  go_on();
  CHECK(receive_json(reader)["partitions"]["fast"]["targets"] == "3");
}

TEST_CASE_FIXTURE(StalledStand,
                  "a status tells of no target that waits by an exclusion that is not committed") {
  const auto exclude = [this](IdSet ranks) {
    service->step(module::Command(module::ReloadCommand{std::move(ranks), {}, {}}));
  };
  exclude({5});
  const auto scheduler = connect();
  request(scheduler, "resource.acquire", nullptr, streaming);
  const json before_commit = read("resource.status");
  CHECK(before_commit["exclude"] == "");
  CHECK_FALSE(before_commit.contains("partitions"));
  go_on();
  CHECK(receive_json(scheduler)["up"] == "0,3-4,6-7");
  CHECK_FALSE(read("resource.status").contains("partitions"));

  held->hold();
  exclude({});
  CHECK_FALSE(read("resource.status").contains("partitions"));
  go_on();
  CHECK(read("resource.status")["partitions"] ==
        json::parse(R"({"": {"targets": "0-7", "held": true, "waiting": "5", "leaving": ""}})"));
}

TEST_CASE_FIXTURE(StalledStand, "a read shows what an earlier answer to its client may tell of") {
  const auto client = connect();
  // Another client has drained this target, and the refusal tells of it.
  request(client, "resource.drain", {{"targets", "2"}, {"reason", "again"}});
  request(client, "resource.status");
  CHECK(silent(client));
  go_on();
  CHECK(receive(client).errnum() != 0);
  CHECK(receive_json(client)["drain"].size() == 2);
}

TEST_CASE_FIXTURE(StalledStand, "reads that wait are forgotten with their client, and end with the store") {
  const auto gone = connect();
  request(gone, "resource.drain", {{"targets", "3"}, {"reason", "x"}});
  request(gone, "resource.status");
  request(operator_, "resource.status");
  disconnect(gone);
  service->on_store_failed(Error(EIO, "the disk is gone"));
  CHECK(receive(operator_).text() == "the disk is gone");
  CHECK(receive(operator_).text() == "the disk is gone");
  CHECK(silent(gone));
}

TEST_CASE_FIXTURE(StalledStand, "a refusal that does not depend on the state leaves at once") {
  const auto client = connect();
  CHECK(ask(client, "no.such").errnum() == ENOSYS);
  CHECK(ask(client, "resource.status-at", {{"at", "noon"}}).errnum() == EPROTO);
  // A refusal of a change may tell of the events that wait.
  request(client, "resource.drain", {{"targets", "2"}, {"reason", "again"}});
  CHECK(silent(client));
  go_on();
  CHECK(receive(client).errnum() != 0);
}

TEST_CASE_FIXTURE(StalledStand, "a leader that cannot commit refuses changes, and is not ready") {
  stall();
  CHECK(read("resource.leader")["epoch"] == 7);
  CHECK(read("config.get") == json::object());
  CHECK(read("resource.stats-get").at("events") == before);
  CHECK(read("resource.status-at", {{"at", now}})["drain"].size() == 1);
  const auto client = connect();
  for (const char* topic : {"resource.drain", "resource.ready"}) {
    const proto::Message refused = ask(client, topic, {{"targets", "0"}, {"reason", "x"}});
    CHECK(refused.errnum() == EAGAIN);
    CHECK(refused.text() == "etcd is slow");
  }
  request(client, "resource.cluster");
  questions.front()(Error(EAGAIN, "etcd has not answered: no route"));
  CHECK(answer_to(client).text() == "etcd has not answered: no route");
  const auto scheduler = connect();
  request(scheduler, "resource.acquire", nullptr, streaming);
  (void)ask(client, "resource.ping", {{"seq", 1}});
  CHECK(silent(scheduler));
  why_stalled.reset();
  go_on();
  CHECK(receive_json(scheduler)["up"] == "0,3-7");
  CHECK(call(client, "resource.drain", {{"targets", "3"}, {"reason", "after"}}).errnum() == 0);
}

TEST_CASE_FIXTURE(StalledStand, "a journal has the committed events") {
  const auto client = connect();
  request(client, "resource.journal", nullptr, streaming);
  std::vector<std::string> reasons;
  for (bool has_all = false; !has_all;) {
    const json events = json::parse(answer_to(client).text()).value("events", json::array());
    has_all = events.empty();
    for (const json& event : events)
      if (event["name"] == "drain") reasons.push_back(event["context"]["reason"]);
  }
  CHECK(reasons == std::vector<std::string>{"before"});
  CHECK(silent(operator_));
}

TEST_CASE_FIXTURE(StalledStand, "metrics count nodes once their events are committed") {
  const auto text = [&] {
    uptime += Seconds(2);
    return read("resource.metrics")["text"].get<std::string>();
  };
  const std::string shown = text();
  CHECK(shown.find("resourced_node_transitions_total{event=\"drain\"} 1\n") != std::string::npos);
  CHECK(shown.find("resourced_log_events " + std::to_string(before) + "\n") != std::string::npos);
  go_on();
  CHECK(text().find("resourced_node_transitions_total{event=\"drain\"} 2\n") != std::string::npos);
}

TEST_SUITE_END();

}  // namespace resourced::daemon::test

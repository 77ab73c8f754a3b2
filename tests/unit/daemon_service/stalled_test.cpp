// The service of a leader whose log commits nothing: nobody sees the events that wait, and requests that do
// not depend on them are answered.
#include <cerrno>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

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
  std::size_t reads = 0;

  [[nodiscard]] log::Sequence last_sequence() const noexcept override { return store_.last_sequence(); }
  [[nodiscard]] bool is_numbered() const noexcept override { return true; }
  [[nodiscard]] WallTime last_timestamp() const noexcept override { return store_.last_timestamp(); }
  void append(log::Record record) override {
    holds_ ? held_.push_back(std::move(record)) : store_.append(std::move(record));
  }
  void find_targets(std::shared_ptr<log::NamedTargets> targets, std::function<void()> answer) override {
    store_.find_targets(std::move(targets), std::move(answer));
  }
  void find_start(const log::EventFilter& filter, std::size_t most,
                  std::function<void(log::HistoryStart)> answer) override {
    store_.find_start(filter, most, std::move(answer));
  }
  void read_page(const log::EventFilter& filter, log::Sequence from, log::Sequence to, std::size_t limit,
                 std::function<void(log::HistoryPage)> answer) override {
    store_.read_page(filter, from, to, limit, std::move(answer));
  }
  void read_past(PastQuestion question, Render render, std::function<void(Past)> answer) override {
    ++reads;
    store_.read_past(std::move(question), std::move(render), std::move(answer));
  }
  void read_usage(UsageQuestion question, RenderUsage render, std::function<void(Past)> answer) override {
    store_.read_usage(std::move(question), std::move(render), std::move(answer));
  }
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
  /// Lets the time pass at which the service looks for a stall.
  void pass() {
    REQUIRE_FALSE(later.empty());
    const auto [when, work] = std::move(later.front());
    later.pop_front();
    uptime = std::max(uptime, when);
    work();
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

TEST_SUITE_BEGIN("stalled log");

TEST_CASE_FIXTURE(StalledStand, "reads are answered from the committed state, with its event") {
  stall();
  const json status = read("resource.status");
  CHECK(status["sequence"] == before);
  REQUIRE(status["drain"].size() == 1);
  CHECK(status["drain"]["1"]["reason"] == "before");
  const json view = read("resource.sched-status");
  CHECK(view["sequence"] == before);
  CHECK(rset::ResourceSet::from_json(view["down"]).ranks() == IdSet{1});
  CHECK(rset::ResourceSet::from_json(view["all"]).ranks() == IdSet::range(0, 7));
  const json inventory = read("resource.get");
  CHECK(inventory["sequence"] == before);
  CHECK(rset::ResourceSet::from_json(inventory["R"]).ranks() == IdSet::range(0, 7));
  CHECK(read("attr.get", {{"name", "hostlist"}})["value"] == "n[0-7]");
  CHECK(silent(operator_));
  // Each kind is read once for all until there is another commit.
  CHECK(held->reads == 4);
  CHECK(read("resource.status") == status);
  CHECK(read("resource.sched-status") == view);
  CHECK(held->reads == 4);
}

TEST_CASE_FIXTURE(StalledStand, "a read that came before the stall is answered once there is one") {
  const auto reader = connect();
  const auto other = connect();
  request(reader, "resource.status");
  request(reader, "resource.ping", {{"seq", 1}});
  request(other, "resource.status");
  request(other, "resource.drain", {{"targets", "2"}, {"reason", "again"}});
  pass();
  CHECK(silent(reader));
  stall();
  pass();
  // The answer of the ping has not to wait for the reading thread.
  CHECK(json::parse(answer_to(reader).text()).at("seq") == 1);
  const json status = json::parse(answer_to(reader).text());
  CHECK(status["sequence"] == before);
  CHECK(status["drain"].size() == 1);
  CHECK(json::parse(answer_to(other).text()) == status);
  CHECK(held->reads == 1);
  // A refusal may tell of the events that wait.
  CHECK(silent(other));
  CHECK(silent(operator_));
  go_on();
  CHECK(receive(operator_).errnum() == 0);
  CHECK(receive(other).errnum() != 0);
  CHECK(silent(reader));
}

TEST_CASE_FIXTURE(StalledStand,
                  "what tells of no event is answered, and a daemon that cannot commit is not ready") {
  stall();
  CHECK(read("resource.ping", {{"seq", 1}}).at("seq") == 1);
  CHECK(read("resource.leader")["epoch"] == 7);
  CHECK(read("config.get") == json::object());
  CHECK(read("resource.stats-get").at("events") == before);
  CHECK(read("resource.status-at", {{"at", now}})["drain"].size() == 1);
  const auto client = connect();
  const proto::Message ready = ask(client, "resource.ready");
  CHECK(ready.errnum() == EAGAIN);
  CHECK(ready.text() == "etcd is slow");
  request(client, "resource.cluster");
  questions.front()(Error(EAGAIN, "etcd has not answered: no route"));
  CHECK(answer_to(client).text() == "etcd has not answered: no route");
  CHECK(ask(client, "no.such").errnum() == ENOSYS);
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

TEST_CASE_FIXTURE(StalledStand, "metrics leave out the states, of which some are not committed") {
  const auto text = [&] {
    uptime += Seconds(2);
    return read("resource.metrics")["text"].get<std::string>();
  };
  const auto early = connect();
  request(early, "resource.metrics");
  CHECK(silent(early));
  stall();
  pass();
  const std::string event = "resourced_log_events " + std::to_string(before) + "\n";
  for (const std::string& shown : {json::parse(answer_to(early).text())["text"].get<std::string>(), text()}) {
    CHECK(shown.find("resourced_nodes") == std::string::npos);
    CHECK(shown.find("resourced_node_transitions") == std::string::npos);
    CHECK(shown.find(event) != std::string::npos);
    CHECK(shown.find("resourced_cluster_role{role=\"leader\"} 1\n") != std::string::npos);
  }
  go_on();
  CHECK(text().find("resourced_node_transitions_total{event=\"drain\"} 2\n") != std::string::npos);
}

TEST_CASE_FIXTURE(StalledStand,
                  "what needs the present state of the leader is refused, and an acquire waits") {
  stall();
  const auto client = connect();
  for (const char* topic :
       {"resource.drain", "resource.allocations", "resource.peers", "feasibility.check"}) {
    CAPTURE(topic);
    request(client, topic, {{"targets", "0"}, {"reason", "x"}, {"jobspec", json::object()}});
    const proto::Message refused = receive(client);
    CHECK(refused.errnum() == EAGAIN);
    CHECK(refused.text() == "etcd is slow");
  }
  const auto scheduler = connect();
  request(scheduler, "resource.acquire", nullptr, streaming);
  (void)ask(client, "resource.ping", {{"seq", 1}});
  CHECK(silent(scheduler));
  go_on();
  CHECK(receive_json(scheduler)["up"] == "0,3-7");
}

TEST_CASE_FIXTURE(StalledStand, "once the log goes on, everything is as before") {
  stall();
  CHECK(read("resource.status")["drain"].size() == 1);
  go_on();
  CHECK(receive(operator_).errnum() == 0);
  const auto client = connect();
  const json status = json::parse(call(client, "resource.status").text());
  CHECK(status["drain"].size() == 2);
  CHECK_FALSE(status.contains("sequence"));
  CHECK(call(client, "resource.drain", {{"targets", "3"}, {"reason", "after"}}).errnum() == 0);
  CHECK(call(client, "resource.peers").errnum() == 0);
  CHECK(held->reads == 1);
}

TEST_CASE_FIXTURE(StalledStand, "a stall that ends without a commit ends for readers, too") {
  stall();
  CHECK(read("resource.status")["sequence"] == before);
  // The log has the event, and its store is late.
  held->release();
  CHECK(answer_to(operator_).errnum() == 0);
  CHECK(read("resource.status").contains("sequence"));
  why_stalled.reset();
  (void)read("resource.ping", {{"seq", 1}});
  CHECK_FALSE(read("resource.status").contains("sequence"));
}

TEST_CASE_FIXTURE(StalledStand, "a client that goes away while its read is answered is forgotten") {
  stall();
  const auto gone = connect();
  const auto stays = connect();
  request(gone, "resource.status");
  request(stays, "resource.status");
  disconnect(gone);
  CHECK(json::parse(answer_to(stays).text())["sequence"] == before);
  CHECK(silent(gone));
  const auto lost = connect();
  transport.gone.insert(lost);
  request(lost, "resource.ping", {{"seq", 1}});
  CHECK(json::parse(ask(stays, "resource.status").text())["sequence"] == before);
}

TEST_SUITE_END();

}  // namespace resourced::daemon::test

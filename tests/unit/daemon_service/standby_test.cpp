// The service of a standby: it serves the state of the leader's log, and refuses everything else with the
// leader's name.
#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "core/module/event.hpp"
#include "daemon/log/records.hpp"
#include "proto/event_json.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using module::DefineEvent;
using module::DrainEvent;
using module::UndrainEvent;
using nlohmann::json;
using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;
using Roster = ::resourced::cluster::Roster;

/// A standby that led until event 3, a drain of rank 1, and follows another leader now.
struct StandbyStand : Stand, private service::Following {
  [[nodiscard]] Standing standing() const override { return now_standing; }
  void ask_roster(TakeRoster take) override { questions.push_back(std::move(take)); }

  StandbyStand() {
    const auto client = connect();
    REQUIRE(call(client, "resource.drain", {{"targets", "1"}, {"reason", "own"}}).errnum() == 0);
    led = json::parse(call(client, "resource.status").text());
    led_view = json::parse(call(client, "resource.sched-status").text());
    led_inventory = json::parse(call(client, "resource.get").text());
    led_hosts = json::parse(call(client, "attr.get", {{"name", "hostlist"}}).text());
    disconnect(client);
    at_first = service->engine().applied();
    following = this;
    state = service->engine().module().state();
    restart();
  }

  /// Appends the next event of the leader, which is durable at once.
  log::Record follow(const module::EventBody& body, std::shared_ptr<const std::string> resources = nullptr,
                     std::shared_ptr<const module::State> snapshot = nullptr) {
    engine::Record event;
    event.sequence = ++sequence;
    event.event = {wall_time(2000), body};
    event.resources = std::move(resources);
    log::Record record = log::make_record(std::move(event));
    record.snapshot = std::move(snapshot);
    take(record);
    return record;
  }
  void take(const log::Record& record) {
    sequence = record.sequence;
    service->follow(record);
    store->append(record);
    while (committed < record.sequence) step();
  }

  json status() { return json::parse(call(connect(), "resource.status").text()); }
  /// The start of this daemon as leader, with the state of its log.
  engine::Start start_of_leader() {
    engine::Start start;
    start.state = service->committed().state();
    start.command.inventory = std::make_shared<const ResourceSet>(start.state.inventory);
    start.command.online = start.command.inventory->ranks();
    return start;
  }

  Standing now_standing{"standby, a leads at tcp://a:7481", true};
  std::deque<TakeRoster> questions;
  json led;
  json led_view;
  json led_inventory;
  json led_hosts;
  log::Sequence at_first = 0;
  log::Sequence sequence = at_first;
};

/// The membership of a standby that was elected.
struct Elected final : service::Leadership {
  [[nodiscard]] std::string name() const override { return "b"; }
  [[nodiscard]] proto::topics::Term term() const override { return {8, "cluster"}; }
  [[nodiscard]] bool may_serve() const override { return true; }
  void ask_roster(TakeRoster take) override { questions.push_back(std::move(take)); }
  void hand_over(const std::string& /*successor*/) override {}
  [[nodiscard]] std::optional<std::string> stalled() const override { return std::nullopt; }

  std::deque<TakeRoster> questions;
};

DrainEvent drain(IdSet::Id rank, const std::string& host, const std::string& reason) {
  return {{reason}, IdSet::range(rank, rank), Hostlist::parse(host)};
}

}  // namespace

TEST_SUITE_BEGIN("standby");

TEST_CASE_FIXTURE(StandbyStand, "the status is that of the leader, with the event at which it is true") {
  json expected = led;
  expected["sequence"] = at_first;
  // Only the leader has results of health checks.
  expected.erase("unchecked");
  CHECK(status() == expected);

  sequence = at_first;
  follow(drain(3, "n3", "theirs"));
  follow(UndrainEvent{IdSet{1}, Hostlist::parse("n1"), std::nullopt});
  const json after = status();
  CHECK(after["sequence"] == at_first + 2);
  REQUIRE(after["drain"].size() == 1);
  CHECK(after["drain"]["3"]["reason"] == "theirs");
}

TEST_CASE_FIXTURE(StandbyStand, "the view of schedulers has what the log tells of it") {
  const auto read = [&] { return json::parse(call(connect(), "resource.sched-status").text()); };
  json expected = led_view;
  expected["sequence"] = at_first;
  CHECK(read() == expected);
  CHECK(read()["reported"] == "");

  sequence = at_first;
  follow(drain(3, "n3", "theirs"));
  follow(module::OfflineEvent{IdSet{5}});
  auto allocation = std::make_shared<module::Allocation>();
  allocation->name.id = "job";
  allocation->resources = ResourceSet({{IdSet{2}, IdSet{0}, {}}}, Hostlist::parse("n2"));
  allocation->text = std::make_shared<const std::string>(allocation->resources.encode());
  follow(module::AllocEvent{{allocation}});
  const json after = read();
  CHECK(after["sequence"] == at_first + 3);
  CHECK(after["all"] == led_view["all"]);
  CHECK(ResourceSet::from_json(after["down"]).ranks() == IdSet{1, 3, 5});
  CHECK(ResourceSet::from_json(after["allocated"]).counts().cores == 1);
  CHECK(ResourceSet::from_json(after["allocated"]).ranks() == IdSet{2});
}

TEST_CASE_FIXTURE(StandbyStand, "the inventory and its hosts are those of the leader") {
  json expected = led_inventory;
  expected["sequence"] = at_first;
  CHECK(json::parse(call(connect(), "resource.get").text()) == expected);
  const auto hosts = [&] { return json::parse(call(connect(), "attr.get", {{"name", "hostlist"}}).text()); };
  CHECK(hosts() == led_hosts);
  CHECK(call(connect(), "attr.get", {{"name", "rank"}}).errnum() == ENOENT);

  sequence = at_first;
  module::PropertyEvent update;
  update.added = {{"fast", IdSet{2}}};
  follow(update);
  const json after = json::parse(call(connect(), "resource.get").text());
  CHECK(after["sequence"] == at_first + 1);
  CHECK(after["R"]["execution"]["properties"] == json{{"fast", "2"}});
  CHECK(hosts() == led_hosts);
  follow(module::ShrinkEvent{IdSet{7}, Hostlist::parse("n7")});
  CHECK(hosts()["value"] == "n[0-7]");
}

TEST_CASE_FIXTURE(StandbyStand, "a jobspec is checked against the inventory of the log") {
  const auto jobspec = [](int cores, const char* property) {
    json spec{{"version", 1},
              {"resources",
               {{{"type", "slot"},
                 {"count", 1},
                 {"label", "task"},
                 {"with", {{{"type", "core"}, {"count", cores}}}}}}},
              {"tasks", {{{"command", {"true"}}, {"slot", "task"}, {"count", {{"per_slot", 1}}}}}},
              {"attributes", {{"system", {{"duration", 0}}}}}};
    if (*property != 0) spec["attributes"]["system"]["constraints"] = {{"properties", {property}}};
    return json{{"jobspec", spec}};
  };
  const auto client = connect();
  CHECK(call(client, "feasibility.check", jobspec(4, "")).errnum() == 0);
  CHECK(call(client, "feasibility.check", jobspec(5, "")).errnum() == EINVAL);
  CHECK(call(client, "feasibility.check", jobspec(1, "fast")).errnum() == EINVAL);
  sequence = at_first;
  module::PropertyEvent update;
  update.added = {{"fast", IdSet{2}}};
  follow(update);
  CHECK(call(client, "feasibility.check", jobspec(1, "fast")).errnum() == 0);
}

TEST_CASE_FIXTURE(StandbyStand, "a definition has all that it changes") {
  sequence = at_first;
  auto next = std::make_shared<const ResourceSet>(
      ResourceSet({{IdSet{0, 1}, IdSet{0}, {}}}, Hostlist::parse("n1,x")));
  module::RestartEvent restart;
  restart.ranks = IdSet{0, 1};
  restart.online = IdSet{0};
  restart.nodelist = next->nodelist();
  follow(restart);
  DefineEvent define;
  define.inventory = next;
  define.exclude = IdSet{1};
  follow(define, std::make_shared<const std::string>(next->encode()));
  const json after = status();
  CHECK(after["R"]["execution"]["nodelist"] == json::array({"n1,x"}));
  CHECK(after["exclude"] == "1");
  CHECK(after["offline"] == "1");
  // The drain of n1 moves with its host.
  REQUIRE(after["drain"].size() == 1);
  CHECK(after["drain"]["0"]["reason"] == "own");
}

TEST_CASE_FIXTURE(StandbyStand, "what waits for an absent host is shown until the leader forgets it") {
  sequence = at_first;
  const auto next =
      std::make_shared<const ResourceSet>(ResourceSet({{IdSet{0}, IdSet{0}, {}}}, Hostlist::parse("x")));
  follow(module::RestartEvent{IdSet{0}, IdSet{0}, next->nodelist()});
  DefineEvent define;
  define.inventory = next;
  follow(define, std::make_shared<const std::string>(next->encode()));
  CHECK(status()["absent"]["drain"][0]["nodelist"] == "n1");
  follow(module::ForgetEvent{Hostlist::parse("n1")});
  CHECK_FALSE(status().contains("absent"));
}

TEST_CASE_FIXTURE(StandbyStand,
                  "after an event that cannot be read the state is not known until one has all of it") {
  sequence = at_first;
  log::Record strange;
  strange.sequence = sequence + 1;
  strange.timestamp = wall_time(2000);
  strange.name = "drain";
  strange.rest = "";
  strange.text = R"({"timestamp":2000,"name":"drain","context":{"idset":"x"}})";
  take(strange);
  const auto client = connect();
  CHECK(call(client, "resource.status").errnum() == EAGAIN);
  follow(drain(3, "n3", "theirs"));
  CHECK(call(client, "resource.status").errnum() == EAGAIN);
  module::State later;
  later.defined = true;
  later.inventory = ResourceSet({{IdSet{0}, IdSet{0}, {}}}, Hostlist::parse("n0"));
  follow(drain(0, "n0", "again"), nullptr, std::make_shared<const module::State>(later));
  CHECK(status()["R"]["execution"]["nodelist"] == json::array({"n0"}));
}

TEST_CASE_FIXTURE(StandbyStand, "a journal has the log, and goes on with the events of the leader") {
  sequence = at_first;
  const auto client = connect();
  request(client, "resource.journal", {{"targets", "n3"}}, streaming);
  request(client, "resource.journal", nullptr, streaming);
  settle();
  const auto names = [&] {
    std::vector<std::string> found;
    for (; !silent(client);) {
      for (const json& event : receive_json(client).value("events", json::array()))
        found.push_back(event["name"]);
    }
    return found;
  };
  CHECK(std::ranges::count(names(), "drain") == 1);
  follow(drain(2, "n2", "unwanted by one of them"));
  settle();
  CHECK(names() == std::vector<std::string>{"drain"});
  follow(drain(3, "n3", "for both"));
  settle();
  CHECK(names() == std::vector<std::string>{"drain", "drain"});
}

TEST_CASE_FIXTURE(StandbyStand,
                  "everything that needs the leader is refused with its name, and changes nothing") {
  const auto client = connect();
  const json before = status();
  // The topics that docs/cluster.md lists.
  const std::set<std::string_view> served{"resource.status",
                                          "resource.journal",
                                          "resource.status-at",
                                          "resource.sched-status",
                                          "resource.get",
                                          "attr.get",
                                          "feasibility.check",
                                          "resource.report",
                                          "resource.cluster",
                                          "resource.metrics",
                                          "resource.ready",
                                          "resource.stats-get",
                                          "resource.stats-clear",
                                          "resource.ping",
                                          "resource.version",
                                          "config.get",
                                          "resource.disconnect",
                                          "resource.agent-cancel",
                                          "resource.wait-cancel",
                                          "resource.acquire-cancel",
                                          "resource.journal-cancel",
                                          "resource.user-names"};
  std::size_t found = 0;
  for (const service::Topic& topic : service::Topics::all()) {
    CAPTURE(topic.name);
    request(client, std::string(topic.name), {{"targets", "0"}, {"reason", "x"}},
            topic.answer == service::Answer::stream ? streaming : 0);
    if (served.contains(topic.name)) {
      ++found;
      settle();
      while (!silent(client)) CHECK(receive(client).errnum() != EHOSTUNREACH);
      continue;
    }
    settle();
    REQUIRE_FALSE(silent(client));
    const proto::Message refused = receive(client);
    CHECK(refused.errnum() == EHOSTUNREACH);
    CHECK(refused.text() == "this daemon does not lead its cluster: standby, a leads at tcp://a:7481");
  }
  CHECK(found == served.size());
  CHECK(status() == before);
  CHECK(service->engine().applied() == at_first);
}

TEST_CASE_FIXTURE(StandbyStand, "the past, reports, pings and the configuration are served") {
  const auto client = connect();
  CHECK(json::parse(call(client, "resource.status-at", {{"at", 1000}}).text())["at"] == 1000);
  CHECK(call(client, "resource.report", {{"since", 999}, {"until", 1000}}).errnum() != EHOSTUNREACH);
  CHECK(call(client, "resource.ping", {{"seq", 1}}).errnum() == 0);
  CHECK(call(client, "config.get").text() == "{}");
  CHECK(json::parse(call(client, "resource.stats-get").text()).is_object());
}

TEST_CASE_FIXTURE(StandbyStand, "readiness and metrics tell a standby from one that etcd does not answer") {
  const auto client = connect();
  const auto metrics = [&] {
    // Metrics are cached for a tenth of a second.
    uptime += Seconds(1);
    return json::parse(call(client, "resource.metrics").text())["text"].get<std::string>();
  };
  CHECK(json::parse(call(client, "resource.ready").text())["text"] == "standby, a leads at tcp://a:7481\n");
  std::string text = metrics();
  CHECK(text.find("resourced_cluster_role{role=\"standby\"} 1\n") != std::string::npos);
  CHECK(text.find("resourced_cluster_role{role=\"leader\"} 0\n") != std::string::npos);
  CHECK(text.find("resourced_log_events " + std::to_string(at_first) + "\n") != std::string::npos);
  // A sum over all daemons would count the nodes twice.
  CHECK(text.find("resourced_nodes") == std::string::npos);
  now_standing = {"standby, etcd does not answer (no route)", false};
  const proto::Message refused = call(client, "resource.ready");
  CHECK(refused.errnum() == EAGAIN);
  CHECK(refused.text() == "standby, etcd does not answer (no route)");
  text = metrics();
  CHECK(text.find("resourced_cluster_role{role=\"standby\"} 0\n") != std::string::npos);
  CHECK(text.find("resourced_cluster_role{role=\"no-majority\"} 1\n") != std::string::npos);
}

TEST_CASE_FIXTURE(StandbyStand, "a standby whose files differ stays ready, and says so") {
  const auto client = connect();
  now_standing.differs = {"inventory", "access"};
  CHECK(json::parse(call(client, "resource.ready").text())["text"] ==
        "standby, a leads at tcp://a:7481; its files differ from the leader's: inventory, access\n");
  const auto text = json::parse(call(client, "resource.metrics").text())["text"].get<std::string>();
  CHECK(text.find("resourced_cluster_files_differ{group=\"access\"} 1\n") != std::string::npos);
  CHECK(text.find("resourced_cluster_files_differ{group=\"exclude\"} 0\n") != std::string::npos);
  CHECK(call(client, "resource.drain", {{"targets", "0"}, {"reason", "x"}}).text() ==
        "this daemon does not lead its cluster: standby, a leads at tcp://a:7481");
}

TEST_CASE_FIXTURE(StandbyStand, "the members are told with the leader, or without one while nobody leads") {
  const auto client = connect();
  Roster roster;
  roster.head = 9;
  roster.members = {{"b", "tcp://b", "1.0", 9}};
  for (const bool has_leader : {true, false}) {
    if (has_leader) roster.leader = {"a", "tcp://a:7481", "p", 12};
    if (!has_leader) roster.leader.reset();
    request(client, "resource.cluster");
    REQUIRE_FALSE(questions.empty());
    questions.front()(roster);
    questions.pop_front();
    settle();
    const json answer = receive_json(client);
    CHECK(answer["name"] == (has_leader ? "a" : ""));
    CHECK(answer["epoch"] == (has_leader ? 12 : 0));
    CHECK(answer["members"][0]["name"] == "b");
  }
}

TEST_CASE("a standby with an empty log knows no inventory, and serves the first definition") {
  Stand stand;
  struct Joining final : service::Following {
    [[nodiscard]] Standing standing() const override { return {"standby, joins the cluster", false}; }
    void ask_roster(TakeRoster /*take*/) override {}
  } joining;
  stand.following = &joining;
  stand.restart();
  const auto client = stand.connect();
  for (const char* topic : {"resource.status", "resource.sched-status", "resource.get"})
    CHECK(stand.call(client, topic).errnum() == EAGAIN);
  CHECK(stand.call(client, "attr.get", {{"name", "hostlist"}}).errnum() == EAGAIN);
  CHECK(stand.call(client, "feasibility.check", {{"jobspec", json::object()}}).errnum() == EAGAIN);
}

TEST_CASE_FIXTURE(StandbyStand, "a standby that is elected serves its clients as a leader") {
  const auto client = connect();
  CHECK(json::parse(call(client, "resource.status").text())["sequence"] == at_first);
  CHECK(call(client, "resource.drain", {{"targets", "3"}, {"reason", "new"}}).errnum() == EHOSTUNREACH);
  request(client, "resource.cluster");
  CHECK(silent(client));
  REQUIRE(questions.size() == 1);

  Elected elected;
  service->lead(elected, std::nullopt);
  // The former membership gives no answer any more.
  REQUIRE(elected.questions.size() == 1);
  elected.questions.front()(Roster{});
  settle();
  CHECK(receive_json(client)["name"] == "b");
  service->step(start_of_leader());
  service->on_defined();
  // A read waits for the events of the start.
  request(client, "resource.status");
  CHECK(silent(client));
  settle();
  CHECK(receive_json(client) == led);
  CHECK(json::parse(call(client, "resource.sched-status").text()) == led_view);
  CHECK(call(client, "resource.drain", {{"targets", "3"}, {"reason", "new"}}).errnum() == 0);
  CHECK(json::parse(call(client, "resource.status").text())["drain"].size() == 2);
  CHECK(json::parse(call(client, "resource.leader").text())["epoch"] == 8);
}

TEST_CASE_FIXTURE(StandbyStand, "nothing that has expired is freed within a minute of a takeover") {
  sequence = at_first;
  auto allocation = std::make_shared<module::Allocation>();
  allocation->name.id = "job";
  allocation->resources = ResourceSet({{IdSet{2}, IdSet{0}, {}}}, Hostlist::parse("n2"));
  allocation->text = std::make_shared<const std::string>(allocation->resources.encode());
  allocation->expiration = wall_time(2100);
  follow(module::AllocEvent{{allocation}});
  const auto pass = [&](Seconds time) {
    uptime += time;
    now += time.count();
    service->on_time();
    settle();
  };
  // This daemon has been a standby for longer than a minute, and the allocation has expired meanwhile.
  now = 2300;
  uptime += Seconds(300);
  Elected elected;
  service->lead(elected, std::nullopt);
  engine::Start first = start_of_leader();
  first.ledger.free_expired = true;
  service->step(first);
  service->on_defined();
  const auto allocations = [&] { return service->engine().module().ledger().all().size(); };
  CHECK(wake == uptime + Seconds(60));
  pass(Seconds(0));
  pass(Seconds(59));
  CHECK(allocations() == 1);
  pass(Seconds(1));
  CHECK(allocations() == 0);
}

TEST_CASE_FIXTURE(StandbyStand, "a leader that waits for its agents does not show the recorded inventory") {
  const auto client = connect();
  CHECK(call(client, "resource.status").errnum() == 0);
  Elected elected;
  service->lead(elected, nodes::Settings{});
  service->discover({.size = 3}, {});
  for (const char* topic : {"resource.status", "resource.get", "resource.sched-status"})
    CHECK(call(client, topic).errnum() == EAGAIN);
}

TEST_SUITE_END();

}  // namespace resourced::daemon::test

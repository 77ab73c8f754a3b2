// The service as the resource module of a Flux instance: rights, errors and ends of streams are those of
// Flux's own module, and targets are ranks of brokers, also before R is known.
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "os/log.hpp"
#include "proto/message.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;
using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

/// A log in memory that has no hidden events, and is committed when the test says so.
class MemoryLog final : public log::EventLog {
 public:
  log::Sequence last_sequence() const noexcept override { return committed_; }
  bool is_numbered() const noexcept override { return false; }
  WallTime last_timestamp() const noexcept override { return {}; }

  void append(log::Record record) override {
    REQUIRE(record.sequence == last_ + 1);
    last_ = record.sequence;
    if (record.audience != log::Audience::nobody) records.push_back(std::move(record));
  }
  void ask(log::Question question) override {
    questions.emplace_back([question = std::move(question)] {
      if (const auto* named = std::get_if<log::FindTargets>(&question)) {
        named->targets->find();
        return named->answer();
      }
      // All events are in the memory of the journal, and an instance has no past to ask for.
      const auto* start = std::get_if<log::FindStart>(&question);
      REQUIRE(start != nullptr);
      start->answer({1, std::nullopt, std::nullopt});
    });
  }
  Counters counters() const override { return {}; }

  log::Sequence last() const { return last_; }
  void commit(log::Sequence sequence) { committed_ = sequence; }

  std::vector<log::Record> records;
  std::deque<std::function<void()>> questions;

 private:
  log::Sequence last_ = 0;
  log::Sequence committed_ = 0;
};

struct Instance final : service::Program {
  FakeTransport transport;
  MemoryLog log;
  std::deque<std::function<void()>> later;
  std::unique_ptr<service::Service> service;
  std::uint32_t last_matchtag = 0;
  std::uint64_t last_client = 0;

  explicit Instance(const char* hosts = "h,h,a,b", const char* online = "0-3") {
    // No log: many of these requests are refused.
    resourced::os::set_log_level(resourced::os::Level::off);
    service = std::make_unique<service::Service>(
        log, *this,
        service::Service::Settings{.configuration = "{}", .access = peers::Access({}, 0), .limits = {}});
    service->step(engine::Start{.brokers = engine::Brokers{Hostlist::parse(hosts), ids(online)}});
    settle();
  }

  [[nodiscard]] WallTime wall_now() const override { return wall_time(1000); }
  [[nodiscard]] SteadyTime steady_now() const override { return steady_time(1); }
  void run_later(Seconds /*pause*/, std::function<void()> work) override { later.push_back(std::move(work)); }
  void wake_at(SteadyTime /*when*/) override {}
  void reload(const By& /*by*/) override {}
  void load(const ResourceSet& /*resources*/, const std::string& /*path*/, bool /*force*/,
            const By& /*by*/) override {}

  static IdSet ids(std::string_view text) { return text.empty() ? IdSet{} : IdSet::parse(text); }

  void define(module::DefineMethod method, const char* ranks, const char* hosts) {
    module::DefineCommand input;
    input.method = method;
    input.inventory = std::make_shared<const ResourceSet>(
        std::vector<rset::ResourceGroup>{{ids(ranks), IdSet::range(0, 1), IdSet{}}}, Hostlist::parse(hosts));
    service->step(input);
    service->on_defined();
    settle();
  }
  void monitor(const char* offline, const char* online) {
    module::MonitorCommand command;
    command.offline = ids(offline);
    command.online = ids(online);
    service->step(module::Command(command));
  }

  /// Commits all events one after the other, and runs deferred work.
  void settle() {
    for (log::Sequence next = log.last_sequence() + 1; next <= log.last(); ++next) {
      log.commit(next);
      service->on_committed(next);
    }
    while (!log.questions.empty() || !later.empty()) {
      auto& queue = log.questions.empty() ? later : log.questions;
      const auto work = std::move(queue.front());
      queue.pop_front();
      work();
      service->on_answered();
    }
  }

  proto::ClientId connect() {
    const proto::ClientId client{++last_client};
    service->on_client(transport, client, {0, 0, {}, {}, true});
    return client;
  }
  /// Sends a request with the credentials that the broker puts into it.
  std::uint32_t request(proto::ClientId client, const std::string& topic, const json& payload = nullptr,
                        std::uint8_t flags = 0, std::uint32_t rolemask = proto::role::owner) {
    const auto bytes = payload.is_null() ? nullptr : proto::make_payload(payload.dump());
    proto::Message message = proto::make_request(topic, ++last_matchtag, bytes, flags);
    message.userid = 1001;
    message.rolemask = rolemask;
    service->on_message(client, std::move(message));
    settle();
    return last_matchtag;
  }
  bool silent(proto::ClientId client) { return transport.sent[client].empty(); }
  proto::Message receive(proto::ClientId client) {
    auto& queue = transport.sent[client];
    REQUIRE_FALSE(queue.empty());
    proto::Message message = std::move(queue.front());
    queue.pop_front();
    return message;
  }
  json receive_json(proto::ClientId client) {
    const proto::Message message = receive(client);
    REQUIRE(message.errnum() == 0);
    return json::parse(message.text());
  }
  proto::Message call(const std::string& topic, const json& payload = nullptr, std::uint8_t flags = 0,
                      std::uint32_t rolemask = proto::role::owner) {
    const proto::ClientId client = connect();
    request(client, topic, payload, flags, rolemask);
    proto::Message response = receive(client);
    service->on_gone(client);
    return response;
  }
};

TEST_CASE(
    "an acquire without the streaming flag is served as one with it, and has no flag in its responses") {
  Instance it;
  it.define(module::DefineMethod::configuration, "0-3", "h,h,a,b");
  const proto::ClientId scheduler = it.connect();
  it.request(scheduler, "resource.acquire");
  const proto::Message first = it.receive(scheduler);
  CHECK(first.errnum() == 0);
  CHECK_FALSE(first.has(streaming));
  CHECK(json::parse(first.text())["up"] == "0-3");
  CHECK(it.call("resource.drain", {{"targets", "2"}}).errnum() == 0);
  CHECK(it.receive_json(scheduler) == json{{"down", "2"}});
  CHECK(it.call("resource.acquire", nullptr, streaming).errnum() == EBUSY);
  it.request(scheduler, "resource.disconnect", nullptr, noresponse);
  const proto::Message next = it.call("resource.acquire", nullptr, streaming);
  CHECK(next.errnum() == 0);
  CHECK(next.has(streaming));
  // A journal without the streaming flag is refused.
  CHECK(it.call("resource.journal").errnum() == EPROTO);
}

TEST_CASE("a cancelled acquire or journal ends with ENODATA, an acquire at the end with ECANCELED") {
  Instance it;
  const proto::ClientId client = it.connect();
  const auto early = it.request(client, "resource.acquire", nullptr, streaming);
  it.request(client, "resource.acquire-cancel", {{"matchtag", early}}, noresponse);
  CHECK(it.receive(client).errnum() == ENODATA);
  it.define(module::DefineMethod::configuration, "0-3", "h,h,a,b");
  const auto held = it.request(client, "resource.acquire", nullptr, streaming);
  CHECK(it.receive(client).errnum() == 0);
  it.request(client, "resource.acquire-cancel", {{"matchtag", held}}, noresponse);
  const proto::Message end = it.receive(client);
  CHECK(end.errnum() == ENODATA);
  CHECK(end.matchtag == held);

  const proto::ClientId reader = it.connect();
  const auto journal = it.request(reader, "resource.journal", nullptr, streaming);
  it.transport.sent[reader].clear();
  it.request(reader, "resource.journal-cancel", {{"matchtag", journal}}, noresponse);
  CHECK(it.receive(reader).errnum() == ENODATA);

  it.request(client, "resource.acquire", nullptr, streaming);
  it.transport.sent[client].clear();
  it.service->shut_down();
  const proto::Message unloaded = it.receive(client);
  CHECK(unloaded.errnum() == ECANCELED);
  CHECK(unloaded.text() == "the resource module was unloaded");
}

TEST_CASE("rights are those of Flux's own module, and so are the refusals") {
  const char* const of_owner[] = {"resource.acquire", "resource.acquire-mute", "resource.journal",
                                  "resource.drain", "resource.undrain", "resource.get", "resource.reload",
                                  "resource.expiration-update", "resource.stats-clear",
                                  "resource.monitor-waitup", "resource.monitor-force-down",
                                  // Topics of this project that change something:
                                  "resource.property", "resource.expiration"};
  const char* const of_users[] = {"resource.status", "resource.sched-status", "resource.ping"};
  Instance it;
  it.define(module::DefineMethod::configuration, "0-3", "h,h,a,b");
  const auto refusal = [&](const char* topic, std::uint32_t rolemask) {
    const proto::Message response = it.call(topic, nullptr, streaming, rolemask);
    return response.errnum() == EPERM ? std::string(response.text()) : "";
  };
  for (const char* topic : of_owner) {
    CAPTURE(topic);
    CHECK(refusal(topic, proto::role::user) == "Request requires owner credentials");
    CHECK(refusal(topic, proto::role::user | proto::role::local) == "Request requires owner credentials");
    if (topic != std::string_view("resource.reload"))  // this service has no reload
      CHECK(refusal(topic, proto::role::owner).empty());
  }
  for (const char* topic : of_users) {
    CAPTURE(topic);
    CHECK(refusal(topic, proto::role::local) == "Request rejected due to insufficient privilege");
    CHECK(refusal(topic, proto::role::user).empty());
  }
  CHECK(refusal("resource.stats-get", proto::role::local).empty());
}

TEST_CASE("an unknown method is refused as the broker does") {
  Instance it;
  const proto::Message response = it.call("resource.foo");
  CHECK(response.errnum() == ENOSYS);
  CHECK(response.text() == "Unknown service method 'resource.foo'");
}

TEST_CASE("topics that an instance has no use for are unknown methods there, to everybody") {
  Instance it;
  it.define(module::DefineMethod::configuration, "0-3", "h,h,a,b");
  for (const std::string topic :
       {"resource.shrink", "resource.agent", "resource.agent-beat", "resource.agent-cancel"}) {
    for (const std::uint32_t rolemask : {proto::role::owner, proto::role::user}) {
      CAPTURE(topic);
      const proto::Message response = it.call(topic, {{"targets", "3"}}, streaming, rolemask);
      CHECK(response.errnum() == ENOSYS);
      CHECK(response.text() == "Unknown service method '" + topic + "'");
    }
  }
  CHECK(it.service->engine().module().inventory().ranks() == IdSet::parse("0-3"));
}

TEST_CASE("an acquire that an earlier process served ends if R is not known any more") {
  Instance it;
  const proto::ClientId scheduler = it.connect();
  proto::Message request = proto::make_request("resource.acquire", 7, nullptr, streaming);
  request.rolemask = proto::role::owner;
  it.service->on_resumed(scheduler, request,
                         streams::SchedulerPosition{IdSet::parse("0-3"), IdSet::parse("0-3")});
  it.settle();
  const proto::Message end = it.receive(scheduler);
  CHECK(end.errnum() == EAGAIN);
  CHECK(end.text() == "the inventory is not known yet");
  CHECK(it.silent(scheduler));
  // The scheduler whose acquire has ended holds nothing.
  it.define(module::DefineMethod::kvs, "0-3", "h,h,a,b");
  CHECK(it.silent(scheduler));
  CHECK(it.call("resource.acquire", nullptr, streaming).errnum() == 0);
}

TEST_CASE("a scheduler that asks for all extensions gets the causes alone, also from the next process") {
  const json all{{"extensions", {"ledger", "scheduled", "cause"}}};
  Instance it;
  it.define(module::DefineMethod::configuration, "0-3", "h,h,a,b");
  const proto::ClientId scheduler = it.connect();
  SUBCASE("from an acquire on") {
    it.request(scheduler, "resource.acquire", all, streaming);
    const json first = it.receive_json(scheduler);
    CHECK(first["extensions"] == json{"cause"});
    CHECK(first.size() == 3);  // beside `resources` and `up`
  }
  SUBCASE("continued") {
    auto request = proto::make_request("resource.acquire", 7, proto::make_payload(all.dump()), streaming);
    request.rolemask = proto::role::owner;
    it.service->on_resumed(scheduler, request,
                           streams::SchedulerPosition{Instance::ids("0-3"), Instance::ids("0-3")});
  }
  CHECK(it.call("resource.drain", {{"targets", "2"}}).errnum() == 0);
  CHECK(it.receive_json(scheduler) == json{{"down", "2"}, {"cause", {{"drained", "2"}}}});
}

TEST_CASE("before R is known there is none to show, and an acquire waits for it") {
  Instance it;
  const proto::Message get = it.call("resource.get");
  CHECK(get.errnum() == ENOENT);
  const proto::Message status = it.call("resource.status");
  CHECK(status.errnum() == ENOENT);
  CHECK(status.text() == "error preparing response: No such file or directory");
  const proto::Message sched_status = it.call("resource.sched-status");
  CHECK(sched_status.errnum() == EINVAL);
  CHECK(sched_status.text() == "error preparing response: No such file or directory");
  const proto::ClientId scheduler = it.connect();
  it.request(scheduler, "resource.acquire", nullptr, streaming);
  CHECK(it.silent(scheduler));

  // The drain names two ranks by their host, before R is known.
  CHECK(it.call("resource.drain", {{"targets", "h"}, {"reason", "fan"}}).errnum() == 0);
  it.define(module::DefineMethod::dynamic_discovery, "0-2", "h,h,a");
  CHECK(it.receive_json(scheduler)["up"] == "2");
  CHECK(it.call("resource.drain", {{"targets", "3"}, {"reason", "no entry"}}).errnum() == 0);
  const json shown = json::parse(it.call("resource.status").text());
  CHECK(shown["online"] == "0-3");
  CHECK(shown["drain"]["0-1"]["reason"] == "fan");
  CHECK(shown["drain"]["3"]["reason"] == "no entry");
  CHECK(json::parse(it.call("resource.get").text())["method"] == "dynamic-discovery");
}

TEST_CASE("waitup counts brokers, and ranks of R above theirs") {
  Instance it("h,h,a,b", "");
  const proto::ClientId waiting = it.connect();
  it.request(waiting, "resource.monitor-waitup", {{"up", 3}});
  CHECK(it.silent(waiting));
  it.monitor("", "0-3");
  it.settle();
  CHECK(it.silent(waiting));
  it.monitor("3", "");
  it.settle();
  CHECK(it.receive(waiting).errnum() == 0);
  for (const int beyond : {-1, 5}) {
    const proto::Message refusal = it.call("resource.monitor-waitup", {{"up", beyond}});
    CHECK(refusal.errnum() == EPROTO);
    CHECK(refusal.text() == "up value is out of range");
  }
  it.define(module::DefineMethod::configuration, "0-1,7", "h,h,z");
  it.request(waiting, "resource.monitor-waitup", {{"up", 5}});
  CHECK(it.silent(waiting));
  CHECK(it.call("resource.monitor-waitup", {{"up", 6}}).errnum() == EPROTO);
}

TEST_CASE("force-down takes any broker's rank, also before R is known") {
  Instance it;
  CHECK(it.call("resource.monitor-force-down", {{"ranks", "1,3"}}).errnum() == 0);
  CHECK(it.service->engine().module().online() == IdSet::parse("0,2"));
  const proto::Message refusal = it.call("resource.monitor-force-down", {{"ranks", "4"}});
  CHECK(refusal.errnum() == EINVAL);
  CHECK(refusal.text() == "idset is out of range");
  it.define(module::DefineMethod::configuration, "0", "h");
  CHECK(it.call("resource.monitor-force-down", {{"ranks", "2"}}).errnum() == 0);
  CHECK(it.service->engine().module().online() == IdSet{0});
}

TEST_CASE("sched-status shows what is allocated, with the properties of its targets") {
  Instance it;
  it.define(module::DefineMethod::configuration, "0-3", "h,h,a,b");
  CHECK(it.call("resource.property", {{"op", "add"}, {"name", "big"}, {"targets", "1-2"}}).errnum() == 0);
  const auto allocated = [&] { return json::parse(it.call("resource.sched-status").text())["allocated"]; };
  // The job manager reports about all targets, so the answer has no key `reported`.
  CHECK_FALSE(json::parse(it.call("resource.sched-status").text()).contains("reported"));
  CHECK(allocated()["execution"]["R_lite"].empty());
  it.service->set_allocated(ResourceSet({{IdSet::parse("2-3"), IdSet{1}, IdSet{}}}, Hostlist::parse("a,b")));
  const json shown = allocated();
  CHECK(shown["execution"]["R_lite"] == json::parse(R"([{"rank": "2-3", "children": {"core": "1"}}])"));
  CHECK(shown["execution"]["nodelist"] == json{"a,b"});
  CHECK(shown["execution"]["properties"] == json{{"big", "2"}});
  // A later change of properties is visible here, too.
  CHECK(it.call("resource.property", {{"op", "add"}, {"name", "big"}, {"targets", "3"}}).errnum() == 0);
  CHECK(allocated()["execution"]["properties"] == json{{"big", "2-3"}});
  it.service->set_allocated(std::nullopt);
  CHECK(allocated()["execution"]["R_lite"].empty());
}

/// A job manager that counts inquiries, which the test answers.
class Jobs final : public service::JobManager {
 public:
  std::uint64_t follow() override {
    follows = true;
    return ++inquiries;
  }
  void stop() override { follows = false; }

  std::uint64_t inquiries = 0;
  bool follows = false;
};

TEST_CASE("resource.wait in an instance ends when the job manager says so, in an answer that is new enough") {
  Instance it;
  it.define(module::DefineMethod::configuration, "0-3", "h,h,a,b");
  Jobs jobs;
  it.service->set_job_manager(&jobs);
  const auto answer = [&](std::uint64_t inquiry, std::optional<IdSet> allocated) {
    it.service->on_jobs({inquiry, std::move(allocated), {}});
    it.settle();
  };
  const proto::ClientId first = it.connect();
  it.request(first, "resource.wait", {{"targets", "1"}, {"for", "idle"}});
  answer(1, IdSet::parse("1-2"));
  const proto::ClientId second = it.connect();
  const auto last = it.request(second, "resource.wait", {{"targets", "a"}, {"for", "idle"}});
  CHECK(jobs.inquiries == 2);
  CHECK(it.service->awaits_jobs(IdSet::parse("2-3")));
  CHECK_FALSE(it.service->awaits_jobs(IdSet{3}));
  // The answer to an inquiry that began before the second request does not count for it.
  answer(1, IdSet{});
  CHECK(it.receive(first).errnum() == 0);
  CHECK(it.silent(second));
  CHECK_FALSE(it.service->awaits_jobs(IdSet{1}));
  answer(2, IdSet{2});
  CHECK(it.silent(second));
  // Once allocations were reported, the request waits for their end, even if the scheduler leaves.
  answer(3, std::nullopt);
  it.service->set_job_manager(nullptr);
  it.settle();
  CHECK(it.silent(second));
  it.service->set_job_manager(&jobs);
  CHECK(jobs.inquiries == 3);
  it.request(second, "resource.wait-cancel", {{"matchtag", last}}, noresponse);
  CHECK(it.receive(second).errnum() == ENODATA);
  CHECK_FALSE(jobs.follows);
  it.service->set_job_manager(nullptr);
  const proto::Message refusal = it.call("resource.wait", {{"targets", "0-3"}, {"for", "reported"}});
  CHECK(refusal.errnum() == EHOSTUNREACH);
  CHECK(refusal.text() == "nobody reports what runs on h,h,a,b");
}

TEST_CASE("a lost rank is down and gone in one response, and neither log nor journal have the shrink") {
  Instance it;
  it.define(module::DefineMethod::kvs, "0-3", "h,h,a,b");
  const proto::ClientId scheduler = it.connect();
  it.request(scheduler, "resource.acquire", nullptr, streaming);
  CHECK(it.receive_json(scheduler)["up"] == "0-3");
  const proto::ClientId reader = it.connect();
  it.request(reader, "resource.journal", nullptr, streaming);
  it.transport.sent[reader].clear();

  it.monitor("2-3", "");
  it.settle();
  CHECK(it.receive_json(scheduler) == json{{"down", "2-3"}, {"shrink", "2-3"}});
  CHECK(it.silent(scheduler));
  const json told = it.receive_json(reader);
  REQUIRE(told["events"].size() == 1);
  CHECK(told["events"][0]["name"] == "offline");
  CHECK(it.silent(reader));
  CHECK(it.call("resource.drain", {{"targets", "0"}}).errnum() == 0);
  CHECK(it.receive_json(reader)["events"][0]["name"] == "drain");

  const json status = json::parse(it.call("resource.sched-status").text());
  CHECK(status["all"]["execution"]["nodelist"] == json{"h,h"});
  // A new reader does not find the shrink, either.
  const proto::ClientId late = it.connect();
  it.request(late, "resource.journal", nullptr, streaming);
  std::vector<std::string> names;
  const json history = it.receive_json(late);
  for (const json& event : history["events"]) names.push_back(event["name"]);
  CHECK(names == std::vector<std::string>{"restart", "resource-define", "offline", "drain"});
  CHECK(it.log.records.size() == names.size());
}

// The KVS does not number events, so an event would have another number in the next process.
TEST_CASE("a journal has no numbers of events, and cannot go on after one") {
  Instance it;
  const proto::ClientId reader = it.connect();
  it.request(reader, "resource.journal", nullptr, streaming);
  CHECK_FALSE(it.receive_json(reader).contains("last"));
  CHECK(it.receive_json(reader) == json{{"events", json::array()}});
  it.request(reader, "resource.journal", {{"after", 1}}, streaming);
  const proto::Message refused = it.receive(reader);
  CHECK(refused.errnum() == ENOSYS);
  CHECK(refused.text() == "after: the events of this instance have no numbers: ask with since");
}

TEST_CASE("a journal may name as many hosts as there are brokers, before R is known") {
  constexpr int brokers = 20000;
  Instance it(fmt::format("node[0-{}]", brokers - 1).c_str());
  std::string all;
  for (int rank = 0; rank < brokers; rank += 2) all += fmt::format("{}node{}", rank == 0 ? "" : ",", rank);
  const proto::ClientId reader = it.connect();
  it.request(reader, "resource.journal", {{"targets", all}}, streaming);
  CHECK(it.receive_json(reader)["events"].size() == 1);
}

}  // namespace
}  // namespace resourced::daemon::test

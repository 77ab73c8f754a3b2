#include "service_stand.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "os/log.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::test {

using rset::ResourceSet;
using text::IdSet;

transport::SendResult FakeTransport::send(proto::ClientId client, const proto::Message& message) {
  if (gone.contains(client)) return transport::SendResult::gone;
  if (full.contains(client)) return transport::SendResult::full;
  sent[client].push_back(message);
  return transport::SendResult::sent;
}

Stand::Stand(std::string_view hosts, std::size_t journal_max, std::optional<nodes::Settings> agents)
    : agents_(std::move(agents)), hosts_(hosts), journal_max_(journal_max) {
  // Switch off the log, as many of these tests use hostile clients.
  resourced::os::set_log_level(resourced::os::Level::off);
  start();
}

Stand::~Stand() {
  store->stop();
  // The threads of the service post until it is destroyed.
  service.reset();
}

void Stand::start() {
  store = std::make_unique<log::Store>(dir.file("state"));
  service::Service::Settings settings{.configuration = "{}",
                                      .journal_max = journal_max_,
                                      .access = peers::Access({}, 0),
                                      .limits = {},
                                      .agents = agents_,
                                      .leadership = leadership,
                                      .following = following,
                                      .state = state};
  log = over_store ? over_store(*store) : nullptr;
  service = std::make_unique<service::Service>(log ? *log : *store, *this, std::move(settings));
  module::State recorded = store->load();
  store->start({[this](std::function<void()> work) { post(std::move(work)); },
                [this](log::Sequence last) {
                  committed = last;
                  service->on_committed(last);
                },
                [](const Error& error) { FAIL("the store failed: ", error.what()); }});
  if (following != nullptr) return;
  if (discovery) return service->discover(*discovery, {});
  const text::Hostlist nodelist = text::Hostlist::parse(hosts_);
  const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(nodelist.size() - 1));
  module::DefineCommand command;
  command.inventory =
      std::make_shared<const ResourceSet>(ResourceSet({{ranks, IdSet::range(0, 3), IdSet{}}}, nodelist));
  if (!agents_) command.online = command.inventory->ranks();
  command.partitions = partitions;
  service->step(engine::Start{command, std::move(recorded), {}, Seconds(0), former});
  service->on_defined();
  settle();
}

void Stand::load(const ResourceSet& resources, const std::string& /*path*/, bool /*force*/, const By& by) {
  module::DefineCommand command;
  command.inventory = std::make_shared<const ResourceSet>(resources);
  if (!agents_) command.online = command.inventory->ranks();
  service->step(command, by);
}

void Stand::run_later(Seconds pause, std::function<void()> work) {
  if (pause > Seconds(0)) {
    later.emplace_back(uptime + pause, std::move(work));
  } else {
    post(std::move(work));
  }
}

void Stand::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  posted_.notify_one();
}

void Stand::restart(std::string_view hosts) {
  if (!hosts.empty()) hosts_ = hosts;
  const engine::Engine* engine = service && following == nullptr ? &service->engine() : nullptr;
  if (engine != nullptr && engine->has_state()) {
    store->stop(&engine->module().state(), engine->applied());
  } else {
    store->stop();
  }
  service.reset();
  store.reset();
  queue_.clear();
  later.clear();
  start();
}

proto::ClientId Stand::connect(const transport::Credentials& credentials) {
  const proto::ClientId client{++last_client_};
  service->on_client(transport, client, credentials);
  return client;
}

std::uint32_t Stand::request(proto::ClientId client, const std::string& topic, const nlohmann::json& payload,
                             std::uint8_t flags) {
  const auto bytes = payload.is_null() ? nullptr : proto::make_payload(payload.dump());
  service->on_message(client, proto::make_request(topic, ++last_matchtag_, bytes, flags));
  return last_matchtag_;
}

std::size_t Stand::posted() {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

void Stand::step() {
  std::function<void()> work;
  {
    std::unique_lock lock(mutex_);
    REQUIRE(posted_.wait_for(lock, std::chrono::seconds(60), [this] { return !queue_.empty(); }));
    work = std::move(queue_.front());
    queue_.pop_front();
  }
  work();
  service->on_answered();
}

void Stand::settle() {
  while (committed < service->engine().applied()) step();
  // The store answers queries in order, and an answer may lead to further queries.
  for (std::uint64_t before = 0;;) {
    bool answered = false;
    store->ask(log::FindStart{{}, 1, [&answered](const log::HistoryStart&) { answered = true; }});
    std::uint64_t steps = 0;
    while (!answered) {
      step();
      ++steps;
    }
    if (steps == 1 && before == 1) return;
    before = steps;
  }
}

void Stand::trim(double before) {
  // The store trims up to the earlier bound of the last two calls, so call it twice.
  for (int call = 0; call < 2; ++call) store->trim(wall_time(before));
  for (bool is_gone = false; !is_gone;) {
    bool answered = false;
    const auto take = [&](const log::HistoryPage& page) {
      answered = true;
      is_gone = page.has_gap;
    };
    store->ask(log::ReadPage{{}, 1, 1, 1, take});
    while (!answered) step();
  }
}

void Stand::catch_up() {
  while (!later.empty()) {
    const auto [when, work] = std::move(later.front());
    later.pop_front();
    uptime = std::max(uptime, when);
    work();
    settle();
  }
}

proto::Message Stand::receive(proto::ClientId client) {
  auto& queue = transport.sent[client];
  REQUIRE_FALSE(queue.empty());
  proto::Message message = std::move(queue.front());
  queue.pop_front();
  return message;
}

nlohmann::json Stand::receive_json(proto::ClientId client) {
  const proto::Message message = receive(client);
  REQUIRE(message.errnum() == 0);
  return nlohmann::json::parse(message.text());
}

proto::Message Stand::call(proto::ClientId client, const std::string& topic, const nlohmann::json& payload) {
  request(client, topic, payload);
  settle();
  // Other threads than the store's answer these, or it does after other questions.
  constexpr std::array<std::string_view, 4> late{"feasibility.check", "resource.reload", "resource.status-at",
                                                 "resource.report"};
  while (std::ranges::find(late, topic) != late.end() && silent(client)) step();
  return receive(client);
}

}  // namespace resourced::daemon::test

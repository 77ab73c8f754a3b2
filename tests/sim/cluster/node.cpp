#include "node.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "checks.hpp"
#include "core/module/state.hpp"
#include "daemon/log/etcd/record_json.hpp"
#include "daemon/log/past_reader.hpp"
#include "inventory.hpp"
#include "proto/event_json.hpp"
#include "state_difference.hpp"

namespace resourced::sim {

using daemon::service::Service;

namespace {

constexpr double longest_write = 0.02;

}  // namespace

Node::Node(World& world, Network& network, Etcd& etcd, std::size_t index, Settings settings,
           Listeners listeners)
    : world_(world),
      network_(network),
      etcd_(etcd),
      index_(index),
      settings_(std::move(settings)),
      listeners_(std::move(listeners)) {}

// The process of the daemon

void Node::start() {
  world_.note(fmt::format("{} starts", name()));
  // The clock starts anew, as after another boot.
  clock_ = {world_.any(1000), 0.98 + world_.any(0.04).count()};
  ++lives_;
  follow();
}

void Node::begin() {
  ++phase_;
  life_ = World::new_life();
  transport_ = std::make_unique<SimTransport>();
  log_ = std::make_unique<SimLog>(disk_);
  current_ = std::make_unique<daemon::log::CurrentLog>(*log_);
}

void Node::follow() {
  begin();
  cluster::Replica replica;
  replica.cluster = identity_;
  replica.applied = disk_.last();
  member_ = std::make_unique<cluster::Member>(member_settings(), std::move(replica));
  Service::Settings settings = service_settings();
  settings.following = &follows_;
  settings.state = disk_.state();
  service_ = std::make_unique<Service>(*current_, *this, std::move(settings));
  coordinator_ = std::make_unique<daemon::log::etcd::Coordinator>(runtime(), *member_);
  daemon::log::etcd::Coordinator::Callbacks callbacks;
  callbacks.joined = [this](const std::string& cluster) { identity_ = cluster; };
  callbacks.entry = [this](const cluster::Batch& batch) {
    for (daemon::log::Record& record :
         daemon::log::etcd::decode_records(batch.text, batch.first, batch.last)) {
      // If a kill has cut a batch, the store has a part of the first one.
      if (record.sequence <= disk_.last()) continue;
      service_->follow(record);
      log_->append(std::move(record));
    }
  };
  callbacks.leads = [this] { next_ = Next::lead; };
  callbacks.ended = [this](const std::string& /*why*/) { next_ = Next::exit; };
  callbacks.failed = [this](const Error& error) {
    demand(error.errnum() == ESTALE, fmt::format("{} ends: {}", name(), error.what()));
    world_.note(fmt::format("{} is left behind: {}", name(), error.what()));
    next_ = Next::fail;
  };
  run([&] { coordinator_->start(std::move(callbacks)); });
}

// Clients stay connected.
void Node::lead() {
  log_->sync(log_->unsynced());
  service_->on_committed(disk_.last());
  check_state();
  coordinator_.reset();
  leader_ = std::make_unique<daemon::log::etcd::LeaderLog>(runtime(), *member_, *log_);
  world_.note(fmt::format("{} leads in epoch {} after event {}", name(), epoch(), disk_.last()));
  etcd_.expect_start(epoch(), settings_.configuration);
  current_->go_on_with(*leader_);
  run([&] {
    service_->lead(leads_, std::nullopt);
    leader_->start({[this](daemon::log::Sequence last) { service_->on_committed(last); },
                    [this](const std::string& why) {
                      world_.note(fmt::format("{} is deposed: {}", name(), why));
                      next_ = Next::follow;
                    }});
    service_->step(start_of_leader());
    started_ = service_->engine().applied();
    service_->on_defined();
  });
}

engine::Start Node::start_of_leader() {
  engine::Start start;
  start.state = service_->committed().state();
  start.command.method = module::DefineMethod::configuration;
  start.command.inventory = resources_of(settings_.configuration.hosts);
  start.command.exclude = idset_of(settings_.configuration.exclude);
  start.command.online = start.command.inventory->ranks();
  start.command.partitions = left_of(settings_.configuration.hosts.size());
  return start;
}

void Node::drop() {
  started_ = 0;
  service_.reset();
  leader_.reset();
  coordinator_.reset();
  current_.reset();
  log_.reset();
  transport_.reset();
  life_.reset();
  alarm_.reset();
  uses_disk_ = is_finishing_ = false;
  next_ = Next::stay;
  clients_.clear();
  were_stalled_.clear();
  arrivals_.clear();
  ++phase_;
  listeners_.closed(*this);
}

void Node::end() {
  log_->sync(log_->unsynced());
  drop();
}

void Node::kill() {
  if (!is_up()) return;
  world_.note(fmt::format("{} is killed", name()));
  log_->sync(world_.below(log_->unsynced() + 1));
  drop();
  member_.reset();
}

void Node::stop() {
  if (!is_up() || is_finishing_) return;
  world_.note(fmt::format("{} is stopped", name()));
  run([this] { finish(Next::exit, std::nullopt); });
}

void Node::finish(Next next, std::optional<std::string> successor) {
  if (std::exchange(is_finishing_, true)) return;
  after_finish_ = next;
  service_->shut_down();
  if (!leader_) return coordinator_->resign();
  leader_->finish([this] { end_store(); }, std::move(successor));
}

void Node::end_store() {
  log_->sync(log_->unsynced());
  after(Seconds(0), [this] {
    leader_->on_stored(disk_.last());
    service_->on_writable();
    next_ = after_finish_;
  });
}

// Functions that the service requires of its process

Service::Settings Node::service_settings() const {
  return {.configuration = "{}",
          .journal_max = settings_.journal_max,
          .access = daemon::peers::Access({}, 0),
          .limits = {}};
}

void Node::wake_at(SteadyTime when) {
  alarm_ = World::new_life();
  world_.at(std::max(world_.now(), clock_.when(when)), {index_, alarm_, true}, [this] {
    if (!is_finishing_) run([this] { service_->on_time(); });
  });
}

void Node::Leads::hand_over(const std::string& successor) {
  node.world_.note(fmt::format("{} hands over to {}", node.name(), successor));
  node.finish(Next::follow, successor);
}

std::unique_ptr<SimRuntime> Node::runtime() {
  return std::make_unique<SimRuntime>(world_, network_, index_, clock_,
                                      [this](const std::function<void()>& work) { run(work); });
}

cluster::Settings Node::member_settings() const {
  cluster::Settings settings;
  settings.name = settings_.name;
  settings.uri = "tcp://" + settings_.name;
  settings.process = fmt::format("{}.{}.{}", index_, lives_, phase_);
  settings.lease_ttl = settings_.lease_ttl;
  settings.keep = settings_.keep;
  settings.trim_after = 5;
  settings.page = 3;
  settings.part_bytes = settings_.part_bytes;
  return settings;
}

WallTime Node::wall_now() const {
  constexpr Seconds begin{1e6};
  return WallTime(begin + wall_offset_ + world_.now().time_since_epoch());
}

void Node::after(Seconds pause, std::function<void()> work, bool is_timer) {
  world_.at(world_.now() + pause, {index_, life_, is_timer}, [this, work = std::move(work)] { run(work); });
}

void Node::run(const std::function<void()>& work) {
  work();
  if (!is_up()) return;
  transmit();
  use_disk();
  go_on();
}

void Node::transmit() {
  while (!transport_->sent.empty()) {
    const auto [client, message] = std::move(transport_->sent.front());
    transport_->sent.pop_front();
    listeners_.sent(*this, client, message);
  }
}

void Node::use_disk() {
  if (uses_disk_ || (log_->unsynced() == 0 && !log_->has_questions())) return;
  uses_disk_ = true;
  after(world_.any(longest_write), [this] { write_disk(); });
}

void Node::write_disk() {
  uses_disk_ = false;
  if (const std::size_t count = log_->unsynced(); count > 0) {
    log_->sync(1 + world_.below(count));
    leader_ ? leader_->on_stored(disk_.last()) : service_->on_committed(disk_.last());
    check_state();
  }
  if (log_->has_questions()) {
    log_->answer();
    service_->on_answered();
  }
}

void Node::check_state() const {
  if (service_->committed().last() != disk_.last()) return;
  const std::string difference = test::state_difference(service_->committed().state(), disk_.state());
  demand(difference.empty(), fmt::format("{} has another state than its disk: {}", name(), difference));
}

void Node::go_on() {
  switch (const Next next = std::exchange(next_, Next::stay)) {
    case Next::stay:
      return;
    case Next::lead:
      return lead();
    case Next::follow:
      end();
      return follow();
    case Next::exit:
    case Next::fail:
      end();
      member_.reset();
      listeners_.exited(*this, next == Next::fail);
      return;
  }
}

// Connections of clients

void Node::deliver(ClientId client, proto::Message message, std::function<void(const Handled&)> handled) {
  constexpr double longest = 0.01;
  SteadyTime& arrival = arrivals_[client];
  arrival = std::max(arrival, world_.now() + world_.any(longest));
  world_.at(arrival, {index_, life_},
            [this, client, message = std::move(message), handled = std::move(handled)] {
              if (is_finishing_ || transport_->gone.contains(client)) return;
              run([&] {
                if (clients_.insert(client).second) service_->on_client(*transport_, client, {0, 0, {}, {}});
                service_->on_message(client, message);
                const std::uint64_t committed = service_->committed().last();
                handled({service_->engine().applied(), committed < started_ ? 0 : committed});
              });
            });
}

void Node::disconnect(ClientId client) {
  transport_->stalled.erase(client);
  transport_->gone.insert(client);
  if (clients_.contains(client)) after(Seconds(0), [this, client] { service_->on_gone(client); });
}

void Node::stall(ClientId client, bool stalls) {
  if (stalls) {
    transport_->stalled.insert(client);
    were_stalled_.insert(client);
  } else if (transport_->stalled.erase(client) > 0) {
    after(Seconds(0), [this] { service_->on_writable(); });
  }
}

}  // namespace resourced::sim

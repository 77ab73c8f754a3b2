#include "daemon/service/service.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>

#include "os/log.hpp"
#include "proto/event_json.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

using proto::Message;

Service::Service(log::EventLog& log, Program& program, Settings settings)
    : log_(log),
      program_(program),
      gate_(std::move(settings.access), settings.limits, stats_),
      changes_(std::move(settings.write_change), *this),
      outbox_(clients_, *this),
      executor_(log, outbox_, program_, *this),
      committed_(std::move(settings.state), log.last_sequence()),
      requests_(registry_, clients_, outbox_, executor_, stats_, *this),
      subscribers_(outbox_, registry_),
      cluster_(requests_, settings.leadership, settings.following, *this),
      answers_(executor_.engine(), committed_, cluster_),
      groups_(make_groups(log, settings)),
      large_(clients_, *this, *this, settings.bounds) {
  set_configuration(std::move(settings.configuration));
  groups_.journal.set_most_consumers(settings.limits.journal_consumers);
  // All events that the store has at the start are on disk.
  outbox_.committed(engine().applied(), program_.steady_now());
  if (settings.agents) step(engine::WatchNodes{*settings.agents});
}

Groups Service::make_groups(log::EventLog& log, Settings& settings) {
  return {
      .executor = executor_,
      .requests = requests_,
      .cluster = cluster_,
      .acquire = {executor_, requests_, answers_, subscribers_, cluster_, *this, settings.bounds},
      .allocations = {executor_, committed_, answers_, requests_},
      .journal = {committed_, cluster_, requests_, outbox_, log, settings.journal_max, holds_, program_,
                  *this},
      .agents = {executor_, requests_},
      .monitor = {executor_, requests_},
      .wait = {executor_, requests_, *this},
      .query = {executor_,
                requests_,
                answers_,
                stats_,
                {committed_, log, clients_, subscribers_, groups_.journal, holds_, outbox_.waits()}},
      .past = {executor_, requests_, log},
      .metrics = {executor_, requests_, stats_, gate_, groups_.journal, cluster_, outbox_.waits(), committed_,
                  log},
      .sched_status = {executor_, committed_, answers_, requests_, *this},
      .feasibility = {requests_, answers_, *this},
      .reload = {executor_, requests_, gate_, program_, std::move(settings.read_topologies), *this},
  };
}

void Service::step(engine::Input input, std::optional<module::Actor> by) {
  std::optional<module::State> before;
  const auto* start = std::get_if<engine::Start>(&input);
  if (start != nullptr && !(start->brokers && engine().has_state())) before = start->state;
  executor_.step(std::move(input), std::move(by));
  if (!before) return;
  committed_.begin(*std::move(before));
  started_ = engine().applied();
}

void Service::lead(Leadership& leadership, const std::optional<nodes::Settings>& agents) {
  executor_.begin(committed_.last(), log_.last_timestamp());
  cluster_.lead(leadership);
  answers_.forget();
  if (agents) step(engine::WatchNodes{*agents});
}

void Service::later(Seconds pause, std::function<void()> work) {
  program_.run_later(pause, [this, work = std::move(work)] {
    if (cluster_.may_serve()) work();
  });
}

void Service::post(std::string_view name, std::function<void()> work) {
  later(Seconds(0), [this, name, work = std::move(work)] {
    const transport::LoopHold hold(&holds_, name);
    work();
    settle();
  });
}

void Service::on_changed() {
  groups_.monitor.on_changed();
  groups_.wait.on_changed();
  groups_.acquire.on_changed();
}

void Service::on_client(transport::Transport& transport, proto::ClientId client,
                        const transport::Credentials& credentials) {
  tell_user(credentials);
  clients_.add(transport, client, credentials, gate_.access().judge(credentials));
}

void Service::on_message(proto::ClientId client, Message message) {
  if (message.type != proto::MessageType::request) return on_malformed(client, "not a request");
  if (!cluster_.may_serve()) return;
  peers::Clients::Client* known = clients_.find(client);
  if (known == nullptr) return;
  peers::stamp(known->principal, message);
  // Take the name from the table, which outlives the message: the hold keeps a view of it.
  const Topic* topic = Topics::find(message.topic);
  const transport::LoopHold hold(&holds_, topic == nullptr ? "unknown" : topic->name);
  if (!message.topic.starts_with("resource.journal")) groups_.journal.served_another();
  const SteadyTime begun = program_.steady_now();
  known->heard = begun;
  if (const auto refusal = gate_.admit(*known, message, registry_.count(client), begun)) {
    if (refusal->is_flood) {
      cut_off(client, refusal->error.what());
    } else {
      turn_away(client, message, refusal->error);
    }
  } else if (!large_.has(client)) {
    on_turn(client, message, nullptr);
  } else {
    try {
      large_.add(client, message);
    } catch (const Error& error) {
      turn_away(client, message, error);
    }
  }
  settle();
}

void Service::on_turn(proto::ClientId client, const Message& request, Content* content) {
  const SteadyTime begun = program_.steady_now();
  dispatch(client, request, nullptr, content);
  if (!large_.reads(client)) groups_.metrics.on_request(program_.steady_now() - begun);
}

const Topic* Service::admit(proto::ClientId client, const peers::Principal& sender, const Message& request) {
  const Topic* const topic = Topics::find(request.topic);
  try {
    if (!request.has(proto::flag::noresponse)) registry_.require_unused(client, request);
    if (topic == nullptr || !Gate::serves(*topic, sender)) throw Gate::unknown(request.topic, sender);
    gate_.check_right(sender, request, Gate::right_for(*topic, sender));
    gate_.check_bound(sender, request, *topic);
    Gate::check_form(request, *topic, sender, committed_.state().addressable().nodelist().size());
    cluster_.check(topic->needs);
  } catch (const Error& error) {
    // Count unknown topics under one name, so clients cannot grow the table.
    stats_.failed(topic == nullptr ? "unknown" : topic->name);
    requests_.turn_away(client, request, error);
    return nullptr;
  }
  const auto why = topic->needs == Needs::commits ? cluster_.stalled() : std::nullopt;
  if (!why) return topic;
  turn_away(client, request, Error(EAGAIN, *why));
  return nullptr;
}

void Service::dispatch(proto::ClientId client, const Message& request, const Position* position,
                       Content* content) {
  // Copy the principal, as the request may end its sender's connection.
  const peers::Principal sender = clients_.find(client)->principal;
  const Topic* const topic = admit(client, sender, request);
  if (topic == nullptr) return;
  if (const auto event = awaited_by(*topic, client))
    return outbox_.push(*event, streams::Read{client, request}, program_.steady_now());
  if (content != nullptr || !large_.is_large(*topic, request))
    return serve({client, request, sender, *topic, content}, position);
  try {
    large_.read(client, *topic, request);
  } catch (const Error& error) {
    turn_away(client, request, error);
  }
}

void Service::on_read(const streams::Read& read) {
  follow_commits(program_.steady_now());
  const peers::Clients::Client* const known = clients_.find(read.from);
  if (known == nullptr) return;
  const peers::Principal sender = known->principal;
  if (const Topic* const topic = admit(read.from, sender, read.request))
    serve({read.from, read.request, sender, *topic}, nullptr);
}

void Service::serve(const Call& call, const Position* position) {
  struct Resume {
    Service& service;
    const Call& call;
    void operator()(const streams::SchedulerPosition& at) const { service.groups_.acquire.resume(call, at); }
    void operator()(const streams::JournalPosition& at) const { service.groups_.journal.resume(call, at); }
  };
  const log::Sequence before = engine().applied();
  try {
    if (position != nullptr) {
      std::visit(Resume{*this, call}, *position);
    } else {
      call.topic.handle(groups_, call);
    }
  } catch (const Error& error) {
    requests_.refuse(call.client, call.request, error);
  }
  if (engine().applied() == before) return;
  if (peers::Clients::Client* known = clients_.find(call.client)) known->last_change = engine().applied();
}

std::optional<log::Sequence> Service::awaited_by(const Topic& topic, proto::ClientId client) {
  if (topic.shows != Shows::committed) return std::nullopt;
  const peers::Clients::Client* const known = clients_.find(client);
  // The state before the events of a start tells nothing of the present.
  log::Sequence event = std::max(started_, known == nullptr ? 0 : known->last_change);
  // Without an inventory there is nothing to show but its first definition.
  if (!committed_.state().defined) event = engine().applied();
  // The division into partitions is that of the present inventory.
  if (!engine().acquisition().partitions().empty()) event = std::max(event, committed_.inventory_change());
  return event > outbox_.committed() ? std::optional(event) : std::nullopt;
}

void Service::on_resumed(proto::ClientId client, const Message& message, const Position& position) {
  if (clients_.find(client) == nullptr) return;
  dispatch(client, message, &position);
  settle();
}

void Service::turn_away(proto::ClientId client, const Message& request, const Error& error) {
  stats_.limited();
  requests_.turn_away(client, request, error);
}

void Service::cut_off(proto::ClientId client, std::string_view why) {
  const peers::Clients::Client* known = clients_.find(client);
  if (known == nullptr) return;
  if (const auto before = lines_.cut_off.admit()) {
    os::log_warning("disconnected {}: {}{}", known->principal.name, why, *before);
  }
  requests_.forget(client, End::ended);
  large_.drop(client);
  clients_.drop(client);
}

void Service::release(proto::RequestKey key, const streams::Stream& stream, End end) {
  struct Visitor {
    Service& service;
    proto::RequestKey key;
    End end;
    void operator()(const std::monostate& /*nothing*/) const {}
    void operator()(const streams::EarlyScheduler& early) const { service.groups_.acquire.release(early); }
    void operator()(const streams::Scheduler& scheduler) const {
      service.groups_.acquire.release(scheduler, end);
    }
    void operator()(const streams::JournalConsumer& consumer) const {
      service.groups_.journal.release(consumer);
    }
    void operator()(const streams::NodeAgent& agent) const {
      service.groups_.agents.release(agent, end);
      // The target of the agent may go offline before anything else is due.
      service.schedule();
    }
    void operator()(const streams::Waitup& waitup) const { service.groups_.monitor.release(key, waitup); }
    void operator()(const streams::FeasibilityCheck& check) const {
      service.groups_.feasibility.release(check);
    }
    void operator()(const streams::InventoryLoad& /*the only one*/) const {
      service.groups_.reload.release();
    }
    void operator()(const streams::StateWait& /*keyed by its request*/) const {
      service.groups_.wait.release(key);
    }
    void operator()(const streams::StatusQuery& /*likewise*/) const {
      service.groups_.sched_status.release(key);
    }
    void operator()(const streams::PastQuery& /*likewise*/) const { service.groups_.past.release(key); }
    void operator()(const streams::ClusterQuery& /*likewise*/) const { service.cluster_.release(key); }
  };
  std::visit(Visitor{*this, key, end}, stream);
}

void Service::flush() {
  outbox_.flush();
  for (const proto::ClientId client : subscribers_.flush(executor_.now().wall, committed_.state()))
    requests_.forget_gone(client);
}

void Service::settle() {
  groups_.wait.on_acquisition();
  flush();
  schedule();
}

// Calls the program only for an earlier time: a timer that fires early finds nothing due and is set again.
void Service::schedule() {
  auto deadline = engine().next_deadline();
  const engine::Now now = executor_.now();
  if (const auto due = engine().next_due(now.wall)) {
    // The timer does not follow the wall clock, which may be set while it runs: check again from time to
    // time.
    constexpr Seconds look_again{60};
    // A shorter time would be lost by rounding when it is added to a time.
    constexpr Seconds least{1e-6};
    const Seconds left = *due - now.wall;
    const SteadyTime at = left > Seconds(0) ? now.steady + std::clamp(left, least, look_again) : now.steady;
    deadline = deadline ? std::min(*deadline, at) : at;
  }
  if (!deadline || (awake_at_ && *awake_at_ <= *deadline)) return;
  awake_at_ = deadline;
  program_.wake_at(*deadline);
}

void Service::on_gone(proto::ClientId client) {
  const transport::LoopHold hold(&holds_, "disconnection");
  const bool has_left = large_.drop(client);
  requests_.forget_gone(client, has_left ? End::ended : End::lost);
  // Another scheduler may hold the targets of this client now.
  groups_.wait.on_acquisition();
  schedule();
}

void Service::on_writable() {
  const transport::LoopHold hold(&holds_, "writing");
  // Queued answers may leave at any time, but the journal reads the log only while this daemon may serve.
  flush();
  if (cluster_.may_serve()) groups_.journal.on_writable();
}

void Service::on_malformed(proto::ClientId client, const std::string& reason) {
  stats_.dropped_frame();
  if (const auto before = lines_.malformed.admit()) {
    const peers::Clients::Client* const known = clients_.find(client);
    os::log_warning("dropped a message{}: {}{}", known == nullptr ? "" : " of " + known->principal.name,
                    reason, *before);
  }
}

void Service::on_refused(const std::string& reason) {
  stats_.refused_connection();
  if (const auto before = lines_.refused.admit()) {
    os::log_warning("refused a connection: {}{}", reason, *before);
  }
}

void Service::on_answered() {
  if (!cluster_.may_serve()) return;
  const transport::LoopHold hold(&holds_, "history");
  groups_.journal.flush();
}

void Service::follow(const log::Record& record) {
  const transport::LoopHold hold(&holds_, "log of the leader");
  text::IdSet ranks = committed_.follow(record, program_.steady_now());
  groups_.journal.append({record.sequence, record.timestamp, record.text, record.name == proto::define_name,
                          record.resources, record.audience},
                         std::move(ranks));
}

// Answers leave first: while this daemon follows the events, their clients send the next requests, and the
// log can commit these. Changes for schedulers follow it, since their causes are those of the state after it.
void Service::on_committed(log::Sequence last) {
  const transport::LoopHold hold(&holds_, "commit");
  const SteadyTime now = program_.steady_now();
  outbox_.committed(last, now);
  groups_.journal.on_committed(last);
  follow_commits(now);
  flush();
  groups_.journal.flush();
}

void Service::follow_commits(SteadyTime now) {
  const std::optional<SteadyTime> since = committed_.waits_since();
  std::size_t events = 0;
  committed_.commit(outbox_.committed(), [&](const Committed::Event& event) {
    if (cluster_.follows()) return;
    ++events;
    groups_.metrics.on_committed(event);
    if (!event.is_of_scheduler) changes_.add(event.record, now);
  });
  if (events > 0) groups_.metrics.on_commit(events, now - *since);
}

void Service::on_time() {
  if (!cluster_.may_serve()) return;
  const transport::LoopHold hold(&holds_, "timer");
  awake_at_.reset();
  step(engine::Tick{});
  settle();
}

void Service::set_job_manager(JobManager* jobs) { groups_.wait.set_job_manager(jobs); }

void Service::on_jobs(JobAnswer answer) { groups_.wait.on_jobs(std::move(answer)); }

void Service::on_defined() {
  groups_.acquire.on_defined();
  settle();
  // Former holders that have not acquired again by then are forgotten.
  if (!engine().reservations().all(executor_.now().steady).empty())
    later(module::Reservations::patience, [this] { groups_.acquire.on_reservations_over(); });
}

void Service::take(engine::Input input, std::string_view source) {
  const transport::LoopHold hold(&holds_, source);
  step(std::move(input));
  settle();
}

bool Service::is_idle(proto::ClientId client) {
  const peers::Clients::Client* known = clients_.find(client);
  return registry_.count(client) == 0 &&
         (known == nullptr || (known->waiting == 0 && known->backlog.empty()));
}

void Service::on_store_failed(const Error& error) {
  large_.drop_all();
  outbox_.abandon(error);
}

void Service::shut_down() {
  large_.drop_all();
  cluster_.shut_down();
  // Mute first, so that no holder gets the resources that another one releases at the end.
  executor_.step(engine::Mute{});
  end_requests(nullptr);
}

void Service::end_requests(const transport::Transport& transport) {
  end_requests(&transport);
  settle();
}

void Service::end_requests(const transport::Transport* transport) {
  for (const Topic& topic : Topics::all()) {
    if (!topic.is_kept()) continue;
    for (const proto::RequestKey key : registry_.with_topic(topic.name)) {
      const peers::Clients::Client* known = clients_.find(key.client);
      if (transport == nullptr || (known != nullptr && known->transport == transport))
        requests_.end(key, normal_end(topic.name, "the resource module was unloaded"));
    }
  }
}

void Service::end_schedulers(const Error& error, const transport::Transport* except) {
  for (const proto::RequestKey key : registry_.with_topic("resource.acquire")) {
    const peers::Clients::Client* known = clients_.find(key.client);
    if (known == nullptr || known->transport != except) requests_.end(key, error);
  }
  settle();
}

void Service::tell_user(const transport::Credentials& credentials) const {
  if (credentials.userid != proto::userid_unknown && !credentials.of_instance)
    program_.on_user(credentials.userid);
}

std::set<std::uint32_t> Service::connected_users() {
  std::set<std::uint32_t> users;
  for (const proto::ClientId client : clients_.all()) {
    const transport::Credentials& credentials = clients_.find(client)->credentials;
    if (credentials.userid != proto::userid_unknown) users.insert(credentials.userid);
  }
  return users;
}

bool Service::welcomes(const transport::Credentials& credentials) const {
  tell_user(credentials);
  return gate_.access().judge(credentials).rights.any();
}

bool Service::may_read(const transport::Credentials& credentials) const {
  tell_user(credentials);
  return gate_.access().judge(credentials).rights.has(peers::Right::read);
}

void Service::set_access_rules(std::vector<config::AccessRule> rules, config::UserGroups groups) {
  gate_.set_access(gate_.access().with_groups(std::make_shared<const config::UserGroups>(std::move(groups))));
  set_access(gate_.access().with_rules(std::move(rules)));
}

void Service::set_access(const peers::Access& access) {
  gate_.set_access(access.with_groups(gate_.access().groups()));
  for (const proto::ClientId client : clients_.all()) {
    peers::Clients::Client& known = *clients_.find(client);
    peers::Principal principal = gate_.access().judge(known.credentials);
    if (principal.rights.any()) {
      known.principal = std::move(principal);
    } else {
      cut_off(client, "it has no role any more");
    }
  }
  for (const Topic& topic : Topics::all()) {
    if (!topic.is_kept()) continue;
    for (const proto::RequestKey key : registry_.with_topic(topic.name)) {
      // The client may be gone: the error of an earlier stream may have overflowed its queue, which drops it.
      const peers::Clients::Client* known = clients_.find(key.client);
      if (known == nullptr) continue;
      const peers::Principal& sender = known->principal;
      const peers::Right right = Gate::right_for(topic, sender);
      if (!sender.rights.has(right)) {
        requests_.end(key, Gate::denial(topic.name, right, sender));
      } else if (const auto beyond = Gate::unbound(topic, sender)) {
        requests_.end(key, *beyond);
      }
    }
  }
  groups_.agents.check_senders(clients_);
  settle();
}

void Service::set_limits(const config::Limits& limits) {
  gate_.set_limits(limits);
  groups_.journal.set_most_consumers(limits.journal_consumers);
}

void Service::set_ledger(const module::LedgerRules& rules) {
  step(engine::KeepLedger{rules});
  schedule();
}

void Service::set_agents(const nodes::Settings& settings) {
  if (!engine().nodes().settings()) return;
  step(engine::WatchNodes{settings});
  schedule();
}

void Service::discover(const nodes::DiscoverySettings& settings, nodes::RecordedHosts recorded) {
  step(engine::Discover{settings, std::move(recorded)});
  // Until the agents have reported, the inventory is not known, although the log may lead to an earlier one.
  committed_.begin({});
  schedule();
  tell_discovery_later();
}

void Service::tell_discovery_later() {
  constexpr Seconds pause{60};
  later(pause, [this] {
    const auto progress = engine().nodes().discovery_progress();
    if (!progress) return;
    os::log_info("the inventory is not known yet: {}", *progress);
    tell_discovery_later();
  });
}

void Service::exclude_from_discovery(const text::Hostlist& hosts) {
  step(engine::DiscoverWithout{hosts});
  schedule();
}

}  // namespace resourced::daemon::service

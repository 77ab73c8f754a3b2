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

Service::Service(log::EventLog& log, std::function<WallTime()> now, Settings settings)
    : uptime_(std::move(settings.uptime)),
      later_([this, later = std::move(settings.later)](Seconds pause, std::function<void()> work) {
        later(pause, [this, work = std::move(work)] {
          if (cluster_.may_serve()) work();
        });
      }),
      on_user_(std::move(settings.on_user)),
      wake_at_(std::move(settings.wake_at)),
      log_(log),
      gate_(std::move(settings.access), settings.limits, stats_),
      changes_(std::move(settings.write_change),
               [this](Seconds pause, auto work) { later_(pause, std::move(work)); }),
      outbox_(clients_, {[this](log::Sequence after, const streams::Update& update) {
                           subscribers_.update(after, update.holder, update.delta);
                         },
                         [this](proto::ClientId client) { requests_.forget(client); }}),
      executor_(log, outbox_,
                [now, uptime = uptime_] {
                  return engine::Now{now(), uptime()};
                },
                {[this](const engine::Record& record) { metrics_.on_applied(record); },
                 [this](log::LoggedEvent event, text::IdSet ranks) {
                   journal_.append(std::move(event), std::move(ranks));
                 },
                 [this](const engine::Record& record) { changes_.add(record, uptime_()); },
                 [this] {
                   monitor_.on_changed();
                   wait_.on_changed();
                 },
                 [this](const nodes::AgentNews& news) { agents_.tell(news); },
                 [this](const rset::ResourceSet& inventory) { agents_.on_discovered(inventory); },
                 [this] { wait_.on_replaced(); }}),
      stalled_(
          outbox_, clients_, log_, [this] { return metrics_.without_states(); },
          [this](proto::ClientId client) { requests_.forget(client); }),
      requests_(
          registry_, clients_, outbox_, stalled_, [this] { return last_event(); }, stats_,
          [this](proto::RequestKey key, const streams::Stream& stream, End end) {
            release(key, stream, end);
          }),
      subscribers_(outbox_, registry_),
      cluster_(requests_, std::move(settings.leadership), settings.following, poster("resource.cluster")),
      replica_(settings.following
                   ? std::make_optional<Replica>(std::move(settings.following->states), log.last_sequence())
                   : std::nullopt),
      answers_(executor_.engine(), cluster_.term(), replica_ ? &*replica_ : nullptr),
      acquire_(
          executor_, requests_, answers_, subscribers_, [this] { later_(Seconds(0), [this] { flush(); }); },
          [this] { keep_holders(); }),
      allocations_(executor_, requests_),
      journal_([this]() -> const rset::ResourceSet& { return targets(); },
               [this](log::Sequence after) { cluster_.check_event(after, told_event()); }, requests_, outbox_,
               log, settings.journal_max, holds_, uptime_, later_),
      agents_(executor_, requests_),
      monitor_(executor_, requests_),
      wait_(executor_, requests_, poster("resource.wait")),
      query_(executor_, requests_, answers_, stats_, holds_, [this] { return gauges(); }),
      past_(requests_, log, std::move(now)),
      metrics_(executor_, requests_, stats_, gate_, journal_, cluster_, uptime_,
               [this] { return told_event(); }),
      sched_status_(executor_, requests_, replica_ ? &*replica_ : nullptr, poster("resource.sched-status")),
      feasibility_(requests_, answers_, poster("feasibility.check")),
      reload_(executor_, requests_, gate_, std::move(settings.reload), std::move(settings.load),
              std::move(settings.read_topologies), poster("resource.reload")) {
  set_configuration(std::move(settings.configuration));
  journal_.set_most_consumers(settings.limits.journal_consumers);
  // All events that the store has at the start are on disk.
  outbox_.committed(engine().applied());
  if (settings.agents) step(engine::WatchNodes{*settings.agents});
}

std::function<void(std::function<void()>)> Service::poster(std::string_view name) {
  return [this, name](std::function<void()> work) {
    later_(Seconds(0), [this, name, work = std::move(work)] {
      const transport::LoopHold hold(&holds_, name);
      work();
      settle();
    });
  };
}

void Service::on_client(transport::Transport& transport, proto::ClientId client,
                        const transport::Credentials& credentials) {
  tell_user(credentials);
  clients_.add(transport, client, credentials, gate_.access().judge(credentials));
}

void Service::on_message(proto::ClientId client, Message message) {
  if (message.type != proto::MessageType::request) return on_malformed("not a request");
  if (!cluster_.may_serve()) return;
  peers::Clients::Client* known = clients_.find(client);
  if (known == nullptr) return;
  peers::stamp(known->principal, message);
  // The hold keeps a view of the name, so it gets that of the table, which outlives the message.
  const Topic* topic = Topics::find(message.topic);
  const transport::LoopHold hold(&holds_, topic == nullptr ? "unknown" : topic->name);
  if (!message.topic.starts_with("resource.journal")) journal_.served_another();
  const SteadyTime begun = uptime_();
  if (const auto refusal = gate_.admit(*known, message, registry_.count(client), begun)) {
    if (refusal->is_flood) {
      cut_off(client, refusal->error.what());
    } else {
      turn_away(client, message, refusal->error);
    }
  } else {
    // A copy, as the request may end its sender's connection.
    dispatch(client, peers::Principal(known->principal), message);
    metrics_.on_request(uptime_() - begun);
  }
  settle();
}

void Service::dispatch(proto::ClientId client, const peers::Principal& sender, const Message& request,
                       const Position* position) {
  struct Resume {
    Service& service;
    const Call& call;
    void operator()(const streams::SchedulerPosition& at) const { service.acquire_.resume(call, at); }
    void operator()(const streams::JournalPosition& at) const { service.journal_.resume(call, at); }
  };
  bool is_admitted = false;
  try {
    const Topic* topic = Topics::find(request.topic);
    if (topic == nullptr || !Gate::serves(*topic, sender)) throw Gate::unknown(request.topic, sender);
    gate_.check_right(sender, request, Gate::right_for(*topic, sender));
    Gate::check_form(request, *topic, sender, targets().nodelist().size());
    cluster_.check(topic->needs);
    if (topic->needs_commits()) {
      if (const auto why = cluster_.stalled()) return turn_away(client, request, Error(EAGAIN, *why));
    }
    is_admitted = true;
    const Call call{client, request, sender, *topic};
    if (position != nullptr) {
      std::visit(Resume{*this, call}, *position);
    } else {
      topic->handle(*this, call);
    }
  } catch (const Error& error) {
    if (!is_admitted && stalled_.is_on()) return turn_away(client, request, error);
    requests_.refuse(client, request, error);
  }
}

void Service::on_resumed(proto::ClientId client, const Message& message, const Position& position) {
  const peers::Clients::Client* known = clients_.find(client);
  if (known == nullptr) return;
  dispatch(client, peers::Principal(known->principal), message, &position);
  settle();
}

// Answers at once: the refusal does not depend on the state, and in the outbox it would take up room and wait
// for the store, like an accepted request.
void Service::turn_away(proto::ClientId client, const Message& request, const Error& error) {
  stats_.limited();
  if (request.has(proto::flag::noresponse)) return;
  if (!outbox_.answer_at_once(client, proto::make_error(request, error))) requests_.forget(client);
}

void Service::cut_off(proto::ClientId client, std::string_view why) {
  const peers::Clients::Client* known = clients_.find(client);
  if (known == nullptr) return;
  if (const auto before = cuts_.admit()) {
    os::log_warning("disconnected {}: {} ({} more since the last such line)", known->principal.name, why,
                    *before);
  }
  requests_.forget(client);
  clients_.drop(client);
}

void Service::release(proto::RequestKey key, const streams::Stream& stream, End end) {
  struct Visitor {
    Service& service;
    proto::RequestKey key;
    End end;
    void operator()(const std::monostate& /*nothing*/) const {}
    void operator()(const streams::EarlyScheduler& /*holds nothing*/) const {}
    void operator()(const streams::Scheduler& scheduler) const { service.acquire_.release(scheduler, end); }
    void operator()(const streams::JournalConsumer& consumer) const { service.journal_.release(consumer); }
    void operator()(const streams::NodeAgent& agent) const {
      service.agents_.release(agent, end);
      // The target may go offline earlier than anything else is due.
      service.schedule();
    }
    void operator()(const streams::Waitup& waitup) const { service.monitor_.release(key, waitup); }
    void operator()(const streams::FeasibilityCheck& check) const { service.feasibility_.release(check); }
    void operator()(const streams::InventoryLoad& /*the only one*/) const { service.reload_.release(); }
    void operator()(const streams::StateWait& /*keyed by its request*/) const { service.wait_.release(key); }
    void operator()(const streams::StatusQuery& /*likewise*/) const { service.sched_status_.release(key); }
    void operator()(const streams::PastQuery& /*likewise*/) const { service.past_.release(key); }
    void operator()(const streams::ClusterQuery& /*likewise*/) const { service.cluster_.release(key); }
  };
  std::visit(Visitor{*this, key, end}, stream);
}

void Service::flush() {
  outbox_.flush();
  for (const proto::ClientId client : subscribers_.flush()) requests_.forget_gone(client);
}

void Service::settle() {
  wait_.on_acquisition();
  flush();
  schedule();
  look_for_stall();
}

// A stall begins without an event of its own: look after each step, and again while answers wait.
void Service::look_for_stall() {
  if (!cluster_.leads() || stalled_.is_on() || outbox_.empty()) return;
  if (cluster_.stalled()) return stalled_.begin();
  constexpr Seconds pause{0.2};
  if (std::exchange(looks_for_stall_, true)) return;
  later_(pause, [this] {
    looks_for_stall_ = false;
    look_for_stall();
    flush();
  });
}

// A timer that fires too early finds nothing due and is set again, so only an earlier time needs a call.
void Service::schedule() {
  auto deadline = engine().next_deadline();
  const engine::Now now = executor_.now();
  if (const auto due = engine().next_due(now.wall)) {
    // The wall clock may be set while the timer runs, which measures another clock: look again from time to
    // time.
    constexpr Seconds look_again{60};
    // Less is lost when it is added to a time.
    constexpr Seconds least{1e-6};
    const Seconds left = *due - now.wall;
    const SteadyTime at = left > Seconds(0) ? now.steady + std::clamp(left, least, look_again) : now.steady;
    deadline = deadline ? std::min(*deadline, at) : at;
  }
  if (!deadline || (awake_at_ && *awake_at_ <= *deadline)) return;
  awake_at_ = deadline;
  wake_at_(*deadline);
}

void Service::on_gone(proto::ClientId client) {
  const transport::LoopHold hold(&holds_, "disconnection");
  requests_.forget_gone(client);
  // Targets that this client held may be those of another scheduler now.
  wait_.on_acquisition();
  schedule();
}

void Service::on_writable() {
  const transport::LoopHold hold(&holds_, "writing");
  // Answers that waited for a client to read may leave at any time; of the log nothing further is read.
  flush();
  if (cluster_.may_serve()) journal_.on_writable();
}

void Service::on_malformed(const std::string& reason) {
  stats_.dropped_frame();
  if (const auto before = malformed_.admit()) {
    os::log_warning("dropped a message: {} ({} more since the last such line)", reason, *before);
  }
}

void Service::on_refused(const std::string& reason) {
  stats_.refused_connection();
  if (const auto before = refusals_.admit()) {
    os::log_warning("refused a connection: {} ({} more since the last such line)", reason, *before);
  }
}

void Service::on_answered() {
  if (!cluster_.may_serve()) return;
  const transport::LoopHold hold(&holds_, "history");
  journal_.flush();
}

void Service::follow(const log::Record& record) {
  const transport::LoopHold hold(&holds_, "log of the leader");
  text::IdSet ranks = replica_->take(record);
  journal_.append({record.sequence, record.timestamp, record.text, record.name == proto::define_name,
                   record.resources, record.hidden, record.of_ledger},
                  std::move(ranks));
}

void Service::on_committed(log::Sequence last) {
  const transport::LoopHold hold(&holds_, "commit");
  metrics_.on_committed(last);
  outbox_.committed(last);
  if (stalled_.is_on() && !cluster_.stalled()) stalled_.end();
  changes_.on_committed(last);
  journal_.on_committed(last);
  flush();
  journal_.flush();
  look_for_stall();
}

void Service::on_time() {
  if (!cluster_.may_serve()) return;
  const transport::LoopHold hold(&holds_, "timer");
  awake_at_.reset();
  step(engine::Tick{});
  settle();
}

void Service::set_job_manager(JobManager* jobs) { wait_.set_job_manager(jobs); }

void Service::on_jobs(JobAnswer answer) { wait_.on_jobs(std::move(answer)); }

void Service::on_defined() {
  acquire_.on_defined();
  settle();
  // Those that are not back by then are forgotten.
  if (!engine().reservations().all(executor_.now().steady).empty())
    later_(module::Reservations::patience, [this] { keep_holders(); });
}

void Service::keep_holders() {
  if (!cluster_.leads() || is_shut_down_) return;
  auto holders = acquire_.holders();
  if (holders == kept_holders_) return;
  cluster_.keep_holders(holders);
  kept_holders_ = std::move(holders);
}

void Service::take(const engine::Input& input, std::string_view source) {
  const transport::LoopHold hold(&holds_, source);
  step(input);
  settle();
}

bool Service::is_idle(proto::ClientId client) {
  const peers::Clients::Client* known = clients_.find(client);
  return registry_.count(client) == 0 &&
         (known == nullptr || (known->waiting == 0 && known->backlog.empty()));
}

void Service::on_store_failed(const Error& error) { outbox_.abandon(error); }

void Service::shut_down() {
  // The holders lose their resources by this daemon's end alone, and may acquire them again.
  is_shut_down_ = true;
  // Mute first, so that no holder gets the resources that another one releases at the end.
  executor_.step(engine::Mute{});
  end_requests([](proto::ClientId) { return true; });
}

void Service::end_requests(const transport::Transport& transport) {
  end_requests([&](proto::ClientId client) {
    const peers::Clients::Client* known = clients_.find(client);
    return known != nullptr && known->transport == &transport;
  });
  settle();
}

void Service::end_requests(const std::function<bool(proto::ClientId)>& is_meant) {
  for (const Topic& topic : Topics::all()) {
    if (topic.answer == Answer::once) continue;
    for (const proto::RequestKey key : registry_.with_topic(topic.name)) {
      if (is_meant(key.client))
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
  if (on_user_ && credentials.userid != proto::userid_unknown && !credentials.of_instance)
    on_user_(credentials.userid);
}

bool Service::welcomes(const transport::Credentials& credentials) const {
  tell_user(credentials);
  return gate_.access().judge(credentials).rights.any();
}

bool Service::may_read(const transport::Credentials& credentials) const {
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
    if (topic.answer == Answer::once) continue;
    for (const proto::RequestKey key : registry_.with_topic(topic.name)) {
      // The error of an earlier stream may have overflowed the client's queue, which has dropped the client.
      const peers::Clients::Client* known = clients_.find(key.client);
      if (known == nullptr) continue;
      const peers::Principal& sender = known->principal;
      const peers::Right right = Gate::right_for(topic, sender);
      if (!sender.rights.has(right)) requests_.end(key, Gate::denial(topic.name, right, sender));
    }
  }
  agents_.check_senders([this](proto::ClientId client) {
    const peers::Clients::Client* const known = clients_.find(client);
    return known == nullptr ? nullptr : &known->principal;
  });
  settle();
}

void Service::set_limits(const config::Limits& limits) {
  gate_.set_limits(limits);
  journal_.set_most_consumers(limits.journal_consumers);
}

void Service::set_agents(const nodes::Settings& settings) {
  if (!engine().nodes().settings()) return;
  step(engine::WatchNodes{settings});
  schedule();
}

void Service::discover(const nodes::DiscoverySettings& settings, nodes::RecordedHosts recorded,
                       std::function<void(const rset::ResourceSet&)> define) {
  agents_.discover(settings, std::move(recorded), std::move(define));
  schedule();
  tell_discovery_later();
}

void Service::tell_discovery_later() {
  constexpr Seconds pause{60};
  later_(pause, [this] {
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

Stats::Gauges Service::gauges() const {
  const log::EventLog::Counters log = log_.counters();
  Stats::Gauges gauges;
  gauges.events = told_event();
  gauges.commits = log.commits;
  gauges.committed_events = log.events;
  gauges.clients = clients_.size();
  gauges.dropped_clients = clients_.dropped();
  gauges.subscribers = engine().acquisition().holders();
  gauges.merged_deltas = subscribers_.merged();
  gauges.journal_consumers = journal_.consumers();
  return gauges;
}

}  // namespace resourced::daemon::service

#include "daemon/service/service.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "core/rset/targets.hpp"
#include "core/text/quote.hpp"
#include "proto/ping.hpp"
#include "proto/rpc.hpp"
#include "proto/topic.hpp"
#include "proto/topics/acquire.hpp"
#include "proto/topics/operate.hpp"
#include "proto/topics/status.hpp"

namespace resourced::daemon::service {

using proto::Message;

namespace {

// The most bytes that a topic reads: parsing takes time and memory in proportion, and a ping is sent back.
std::size_t most_bytes(std::string_view topic, peers::Right right, std::size_t targets) {
  constexpr std::size_t kib = 1024;
  if (topic == "resource.ping") return 64 * kib;
  if (topic == "feasibility.check" || right == peers::Right::operate || right == peers::Right::own)
    return 1024 * kib;
  // Every host by name, where names are of a usual length; ranges take less.
  if (topic == "resource.journal") return 64 * kib + 8 * targets;
  return 16 * kib;
}

void check_size(const Message& request, peers::Right right, std::size_t targets) {
  if (!request.payload) return;
  const std::size_t most = most_bytes(request.topic, right, targets);
  const std::size_t size = request.payload->size();
  if (size > most) {
    throw Error(EMSGSIZE, fmt::format("{}: a payload of {} bytes, more than {}", request.topic, size, most));
  }
}

// The errno that ends a stream in good order. Flux's consumers of the journal take only ENODATA for its end;
// RFC 28 ends an acquire with ECANCELED.
int normal_end(std::string_view topic) { return topic == "resource.journal" ? ENODATA : ECANCELED; }

}  // namespace

Service::Service(store::EventLog& log, std::function<double()> now, Settings settings)
    : requests_(std::numeric_limits<std::size_t>::max()),
      subscribers_(clients_, requests_),
      outbox_([this](streams::Outgoing outgoing) { deliver(std::move(outgoing)); }),
      executor_(log, outbox_, std::move(now),
                {[this](store::LoggedEvent event, IdSet ranks) {
                   journal_.append(std::move(event), std::move(ranks));
                 },
                 [this] { answer_waitups(); }, [this](const IdSet& ranks) { end_agents(ranks); }}),
      later_(std::move(settings.later)),
      journal_(clients_, requests_, log, settings.journal_max,
               [this] { later_(0, [this] { on_journal_room(); }); }),
      answers_(executor_.module(), executor_.engine().acquisition()),
      wake_at_(std::move(settings.wake_at)),
      access_(std::move(settings.access)),
      uptime_(std::move(settings.uptime)),
      reload_(std::move(settings.reload)),
      load_(std::move(settings.load)),
      log_(log),
      feasibility_([this](std::function<void()> work) { later_(0, std::move(work)); },
                   [this](proto::RequestKey key, const std::optional<Error>& refusal) {
                     answer_feasibility(key, refusal);
                   }),
      inventory_file_([this](std::function<void()> work) { later_(0, std::move(work)); }) {
  set_configuration(std::move(settings.configuration));
  set_limits(settings.limits);
  // All events that the store has at the start are on disk.
  outbox_.committed(engine().applied());
  if (settings.agents) agents_.emplace(executor_, *settings.agents);
}

void Service::set_configuration(std::string configuration) {
  configuration_ = proto::make_payload(std::move(configuration));
}

const Service::Topic* Service::find_topic(std::string_view name) {
  static constexpr std::array<Topic, 27> topics{{
      {"resource.acquire", &Service::acquire, peers::Right::schedule, true},
      {"resource.acquire-cancel", &Service::cancel, peers::Right::none},
      {"resource.acquire-mute", &Service::acquire_mute, peers::Right::operate},
      {"resource.agent", &Service::agent, peers::Right::report, true},
      {"resource.agent-cancel", &Service::cancel, peers::Right::none},
      {"resource.agent-beat", &Service::agent_beat, peers::Right::report},
      {"resource.disconnect", &Service::disconnect, peers::Right::none},
      {"resource.drain", &Service::drain, peers::Right::operate},
      {"resource.undrain", &Service::undrain, peers::Right::operate},
      {"resource.property", &Service::property, peers::Right::operate},
      {"resource.expiration", &Service::expiration, peers::Right::operate},
      {"resource.expiration-update", &Service::expiration, peers::Right::operate},
      {"resource.shrink", &Service::shrink, peers::Right::operate},
      {"resource.monitor-waitup", &Service::monitor_waitup, peers::Right::own},
      {"resource.monitor-force-down", &Service::monitor_force_down, peers::Right::own},
      {"resource.status", &Service::status, peers::Right::read},
      {"resource.sched-status", &Service::sched_status, peers::Right::read},
      {"resource.get", &Service::inventory, peers::Right::read},
      {"resource.journal", &Service::journal, peers::Right::read, true},
      {"resource.journal-cancel", &Service::cancel, peers::Right::none},
      {"resource.reload", &Service::reload, peers::Right::operate},
      {"resource.stats-get", &Service::stats, peers::Right::read},
      {"resource.stats-clear", &Service::stats_clear, peers::Right::own},
      {"resource.ping", &Service::ping, peers::Right::read},
      {"feasibility.check", &Service::feasibility, peers::Right::read},
      {"config.get", &Service::config_get, peers::Right::read},
      {"attr.get", &Service::attr_get, peers::Right::read},
  }};
  const auto* const found = std::ranges::find(topics, name, &Topic::name);
  return found == topics.end() ? nullptr : found;
}

void Service::on_client(transport::Transport& transport, proto::ClientId client,
                        const transport::Credentials& credentials) {
  clients_.add(transport, client, credentials, access_.judge(credentials));
}

void Service::on_message(proto::ClientId client, Message message) {
  if (message.type != proto::MessageType::request) {
    on_malformed("not a request");
    return;
  }
  const peers::Clients::Client* known = clients_.find(client);
  if (known == nullptr) return;
  peers::stamp(known->principal, message);
  // The name outlives the message.
  const Topic* topic = find_topic(message.topic);
  const transport::LoopHold hold(&holds_, topic == nullptr ? "unknown" : topic->name);
  if (!message.topic.starts_with("resource.journal")) journal_pace_.served_another(uptime_());
  try {
    if (admit(client, message)) dispatch(client, message);
  } catch (const Error& error) {
    refuse(client, message, error);
  }
  flush();
  schedule();
}

void Service::dispatch(proto::ClientId client, const Message& request) {
  const Topic* topic = find_topic(request.topic);
  if (topic == nullptr) throw Error(ENOSYS, "unknown topic: " + request.topic);
  check_right(client, request, topic->right);
  check_size(request, topic->right, executor_.module().inventory().nodelist().size());
  if (topic->streaming && !request.has(proto::flag::streaming)) {
    throw Error(EPROTO, request.topic + ": a request that streams must say so");
  }
  (this->*topic->handle)(client, request);
}

void Service::on_gone(proto::ClientId client) {
  const transport::LoopHold hold(&holds_, "end of a client");
  forget(client);
  clients_.remove(client);
  schedule();
}

void Service::on_writable() {
  const transport::LoopHold hold(&holds_, "writing");
  flush();
  if (journal_.blocked()) flush_journal();
}

void Service::on_malformed(const std::string& reason) {
  stats_.dropped_frame();
  if (const auto before = malformed_.admit()) {
    spdlog::warn("dropped a message: {} ({} more since the last such line)", reason, *before);
  }
}

void Service::on_refused(const std::string& reason) {
  stats_.refused_connection();
  if (const auto before = refusals_.admit()) {
    spdlog::warn("refused a connection: {} ({} more since the last such line)", reason, *before);
  }
}

void Service::on_answered() {
  const transport::LoopHold hold(&holds_, "history");
  flush_journal();
}

void Service::on_committed(store::Sequence last) {
  const transport::LoopHold hold(&holds_, "commit");
  outbox_.committed(last);
  journal_.committed(last);
  flush();
  flush_journal();
}

void Service::on_store_failed(const Error& error) {
  for (streams::Outgoing& outgoing : outbox_.abandon()) {
    auto* response = std::get_if<streams::Response>(&outgoing);
    if (response == nullptr) continue;
    clients_.send(response->to, proto::make_error(response->message, error));
  }
}

void Service::shut_down() {
  // No holder gets what another lets go at the end.
  executor_.step(engine::Mute{});
  for (const std::string_view topic : streams) {
    for (const proto::RequestKey key : requests_.with_topic(topic)) {
      end_stream(key, Error(normal_end(topic), "the resource module was unloaded"));
    }
  }
}

void Service::acquire(proto::ClientId client, const Message& request) {
  std::optional<std::string> partition;
  if (request.has(proto::flag::payload)) {
    partition = proto::parse_acquire(proto::parse_object(request));
  }
  const proto::RequestKey key = requests_.add(client, request);
  if (executor_.module().defined()) {
    hold(key, partition);
  } else {
    early_acquires_.emplace(key, std::move(partition));
  }
}

void Service::hold(proto::RequestKey key, const std::optional<std::string>& partition) {
  const auto holder = subscribers_.add(key);
  try {
    const auto acquired = executor_.step(engine::Acquire{holder, partition});
    respond(key.client, *requests_.find(key), answers_.acquired(acquired->resources, acquired->kept));
  } catch (const Error& error) {
    end_stream(key, error);
  }
}

void Service::cancel(proto::ClientId client, const Message& request) {
  const auto cancelled = requests_.take_cancelled(client, request);
  if (!cancelled) return;
  release({client, cancelled->matchtag}, Agents::End::farewell);
  refuse(client, *cancelled, Error(normal_end(cancelled->topic), "the request was cancelled"));
}

Stats::Gauges Service::gauges() const {
  const store::EventLog::Counters store = log_.counters();
  Stats::Gauges gauges;
  gauges.events = engine().applied();
  gauges.commits = store.commits;
  gauges.committed_events = store.events;
  gauges.clients = clients_.size();
  gauges.dropped_clients = clients_.dropped();
  gauges.subscribers = engine().acquisition().holders();
  gauges.merged_deltas = subscribers_.merged();
  gauges.journal_consumers = journal_.consumers();
  return gauges;
}

void Service::stats(proto::ClientId client, const Message& request) {
  respond(client, request, proto::make_payload(stats_.encode(gauges(), holds_.longest())));
}

void Service::acquire_mute(proto::ClientId client, const Message& request) {
  executor_.step(engine::Mute{});
  respond(client, request);
}

void Service::disconnect(proto::ClientId client, const Message& /*request*/) { forget(client); }

void Service::drain(proto::ClientId client, const Message& request) {
  execute(client, request, proto::parse_drain(proto::parse_object(request)));
}

void Service::undrain(proto::ClientId client, const Message& request) {
  execute(client, request, proto::parse_undrain(proto::parse_object(request)));
}

void Service::property(proto::ClientId client, const Message& request) {
  execute(client, request, proto::parse_property(proto::parse_object(request)));
}

void Service::expiration(proto::ClientId client, const Message& request) {
  const store::Sequence before = engine().applied();
  execute(client, request, proto::parse_expiration(proto::parse_object(request)));
  if (engine().applied() != before) own_expiration_set_ = engine().applied_at();
}

void Service::shrink(proto::ClientId client, const Message& request) {
  execute(client, request, proto::parse_shrink(proto::parse_object(request)));
}

void Service::status(proto::ClientId client, const Message& request) {
  respond(client, request, answers_.status());
}

void Service::sched_status(proto::ClientId client, const Message& request) {
  respond(client, request, answers_.sched_status());
}

void Service::inventory(proto::ClientId client, const Message& request) {
  respond(client, request, answers_.inventory());
}

void Service::feasibility(proto::ClientId client, const Message& request) {
  if (!executor_.module().defined()) throw Error(EAGAIN, "the inventory is not known yet");
  const proto::RequestKey key = requests_.add(client, request);
  try {
    feasibility_.add(key, clients_.find(client)->principal.name, request, answers_.acquirable());
  } catch (const Error&) {
    requests_.take(key);
    throw;
  }
}

void Service::answer_feasibility(proto::RequestKey key, const std::optional<Error>& refusal) {
  const transport::LoopHold hold(&holds_, "feasibility.check");
  const auto request = requests_.take(key);
  if (!request) return;
  if (refusal) {
    refuse(key.client, *request, *refusal);
  } else {
    respond(key.client, *request);
  }
  flush();
}

void Service::ping(proto::ClientId client, const Message& request) {
  respond(client, request,
          proto::make_payload(proto::answer_ping(request, static_cast<std::uint64_t>(client))));
}

void Service::config_get(proto::ClientId client, const Message& request) {
  respond(client, request, configuration_);
}

// Answers the broker attribute `hostlist`, from which Flux's command line derives the ranks of hosts. Other
// attributes describe a broker, which this daemon is not.
void Service::attr_get(proto::ClientId client, const Message& request) {
  const std::string name = proto::parse_attr_get(proto::parse_object(request));
  if (name != "hostlist") throw Error(ENOENT, fmt::format("unknown attribute: {}", resourced::quoted(name)));
  if (!engine().module().defined()) throw Error(EAGAIN, "the inventory is not known yet");
  respond(client, request, answers_.hostlist());
}

void Service::execute(proto::ClientId client, const Message& request, const Command& command) {
  executor_.step(command);
  respond(client, request);
}

void Service::respond(proto::ClientId client, const Message& request, proto::Payload payload) {
  stats_.succeeded(request.topic);
  if (!request.has(proto::flag::noresponse)) push(client, proto::make_response(request, std::move(payload)));
}

void Service::refuse(proto::ClientId client, const Message& request, const Error& error) {
  // Topics that there are not would fill the memory with whatever somebody thinks up.
  stats_.failed(find_topic(request.topic) == nullptr ? "unknown" : request.topic);
  if (!request.has(proto::flag::noresponse)) push(client, proto::make_error(request, error));
}

void Service::push(proto::ClientId client, Message response) {
  if (peers::Clients::Client* known = clients_.find(client)) ++known->waiting;
  outbox_.push(engine().applied(), streams::Response{client, std::move(response)});
}

void Service::deliver(streams::Outgoing outgoing) {
  if (auto* response = std::get_if<streams::Response>(&outgoing)) {
    if (peers::Clients::Client* known = clients_.find(response->to)) --known->waiting;
    if (!clients_.send(response->to, std::move(response->message))) forget(response->to);
  } else {
    const auto& update = std::get<streams::Update>(outgoing);
    subscribers_.update(update.holder, update.delta);
  }
}

void Service::flush() {
  for (const proto::ClientId client : clients_.flush()) forget(client);
  for (const proto::ClientId client : subscribers_.flush()) on_gone(client);
}

void Service::forget(proto::ClientId client) {
  for (const Message& request : requests_.take_client(client)) release({client, request.matchtag});
}

void Service::release(proto::RequestKey request, Agents::End end) {
  journal_.remove(request);
  early_acquires_.erase(request);
  waitups_.remove(request);
  feasibility_.drop(request);
  if (loading_ == request) {
    loading_.reset();
    inventory_file_.drop();
  }
  if (agents_) agents_->end(request, end, uptime_());
  if (const auto holder = subscribers_.remove(request)) {
    executor_.step(engine::Release{*holder});
    // Other holders may have got something, and this may be in the middle of a round of sending.
    if (!engine().acquisition().partitions().empty()) later_(0, [this] { flush(); });
  }
}

void Service::end_stream(proto::RequestKey request, const Error& error) {
  release(request);
  if (const auto known = requests_.take(request)) refuse(request.client, *known, error);
}

}  // namespace resourced::daemon::service

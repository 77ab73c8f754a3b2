#include "daemon/service/topics.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/json/reader.hpp"
#include "daemon/service/groups.hpp"
#include "os/log.hpp"
#include "proto/message.hpp"
#include "proto/topics/acquire.hpp"
#include "proto/topics/allocations.hpp"
#include "proto/topics/diagnostics.hpp"
#include "proto/topics/operate.hpp"

namespace resourced::daemon::service {
namespace {

constexpr std::size_t kib = 1024;
constexpr Bound large{.bytes = 1024 * kib};
// Limits of a ping, whose payload is sent back.
constexpr Bound echoed{.bytes = 64 * kib, .values = proto::topics::max_ping_values};
// Limits that allow a payload to name every host, with names of the usual length; ranges take less.
constexpr Bound named_hosts{.bytes = 64 * kib, .bytes_a_target = 8};
// Limits of a change of the ledger: as many values as its bytes can hold. LargeRequests reads the payloads
// that the loop cannot read within its bound.
constexpr Bound ledger{.bytes = 1024 * kib, .values = 1024 * kib};
// Limits of a jobspec, which the thread of FeasibilityChecks parses.
constexpr Bound jobspec{.bytes = 1024 * kib, .values = proto::topics::max_feasibility_values};

// Calls the handler in a group of topics.
template <auto Group, auto Handler>
void call(Groups& groups, const Call& call) {
  (groups.*Group.*Handler)(call);
}

template <auto Handler>
void of_cluster(Groups& groups, const Call& call) {
  (groups.cluster.*Handler)(call);
}

// Handles a request that is one command to the engine: `Parse` makes the command from the payload.
template <auto Parse, class Input = module::Command>
void command(Groups& groups, const Call& call) {
  auto parsed = Parse(call.object());
  if constexpr (requires { parsed.targets; }) {
    if (call.sender.hosts != nullptr)
      call.sender.check_acts_on(groups.executor.module().hosts_named(parsed.targets));
  }
  if constexpr (requires { parsed.hosts; }) call.sender.check_acts_on(text::Hostlist::parse(parsed.hosts));
  groups.executor.step(Input{std::move(parsed)}, call.actor());
  groups.requests.respond(call);
}

// Reads a payload as one JSON value, and makes the command of it. resource.alloc, whose payload is mostly the
// text of R, is read part by part instead.
template <auto Parse>
bool payload(json_text::JsonReader& reader, module::LedgerCommand& out) {
  nlohmann::json object;
  if (!reader.value(object) || !object.is_object() || !reader.at_end()) return false;
  out = Parse(object);
  return true;
}

void cancel(Groups& groups, const Call& call) { groups.requests.cancel(call); }

void disconnect(Groups& groups, const Call& call) { groups.requests.forget(call.client, End::ended); }

using peers::Right;

constexpr auto topics = std::to_array<Topic>({
    {.name = "resource.acquire",
     .handle = call<&Groups::acquire, &AcquireTopics::acquire>,
     .right = Right::schedule,
     .answer = Answer::stream},
    {.name = "resource.acquire-cancel",
     .handle = cancel,
     .answer = Answer::none,
     .needs = Needs::log,
     .shows = Shows::nothing},
    {.name = "resource.alloc",
     .handle = call<&Groups::allocations, &AllocationTopics::alloc>,
     .read = proto::topics::read_alloc,
     .right = Right::schedule,
     .bound = ledger,
     .needs = Needs::commits,
     .in_instance = false},
    {.name = "resource.free",
     .handle = call<&Groups::allocations, &AllocationTopics::change>,
     .read = payload<proto::topics::parse_free>,
     .right = Right::schedule,
     .bound = ledger,
     .needs = Needs::commits,
     .in_instance = false},
    {.name = "resource.force-free",
     .handle = call<&Groups::allocations, &AllocationTopics::force_free>,
     .read = payload<proto::topics::parse_free>,
     .right = Right::operate,
     .bound = ledger,
     .needs = Needs::commits,
     .names_targets = true,
     .in_instance = false},
    {.name = "resource.alloc-update",
     .handle = call<&Groups::allocations, &AllocationTopics::update>,
     .read = payload<proto::topics::parse_alloc_update>,
     .right = Right::schedule,
     .bound = ledger,
     .needs = Needs::commits,
     .is_for_admins = true,
     .in_instance = false},
    {.name = "resource.allocations",
     .handle = call<&Groups::allocations, &AllocationTopics::list>,
     .right = Right::read,
     .bound = named_hosts,
     .shows = Shows::committed,
     .in_instance = false},
    {.name = "resource.acquire-mute",
     .handle = call<&Groups::acquire, &AcquireTopics::mute>,
     .right = Right::operate,
     .bound = large},
    {.name = "resource.acquire-renew",
     .handle = call<&Groups::acquire, &AcquireTopics::renew>,
     .right = Right::schedule,
     .shows = Shows::nothing,
     .in_instance = false},
    {.name = "resource.evict",
     .handle = call<&Groups::acquire, &AcquireTopics::evict>,
     .right = Right::operate,
     .needs = Needs::commits,
     .in_instance = false},
    {.name = "resource.peers",
     .handle = call<&Groups::acquire, &AcquireTopics::peers>,
     .right = Right::read,
     .bound = named_hosts,
     .in_instance = false},
    {.name = "resource.journal",
     .handle = call<&Groups::journal, &JournalTopics::journal>,
     .right = Right::read,
     .answer = Answer::stream,
     .bound = named_hosts,
     .needs = Needs::log,
     .shows = Shows::nothing,
     .right_in_instance = Right::own},
    {.name = "resource.journal-cancel",
     .handle = cancel,
     .answer = Answer::none,
     .needs = Needs::log,
     .shows = Shows::nothing},
    {.name = "resource.agent",
     .handle = call<&Groups::agents, &AgentTopics::hello>,
     .right = Right::report,
     .answer = Answer::stream,
     .in_instance = false},
    {.name = "resource.agent-cancel",
     .handle = cancel,
     .answer = Answer::none,
     .needs = Needs::log,
     .shows = Shows::nothing,
     .in_instance = false},
    {.name = "resource.agent-beat",
     .handle = call<&Groups::agents, &AgentTopics::beat>,
     .right = Right::report,
     .in_instance = false},
    {.name = "resource.agent-health",
     .handle = call<&Groups::agents, &AgentTopics::health>,
     .right = Right::report,
     .in_instance = false},
    {.name = "resource.disconnect",
     .handle = disconnect,
     .answer = Answer::none,
     .needs = Needs::log,
     .shows = Shows::nothing},
    {.name = "resource.drain",
     .handle = command<proto::topics::parse_drain>,
     .right = Right::operate,
     .bound = large,
     .needs = Needs::commits,
     .names_targets = true},
    {.name = "resource.undrain",
     .handle = command<proto::topics::parse_undrain>,
     .right = Right::operate,
     .bound = large,
     .needs = Needs::commits,
     .names_targets = true},
    {.name = "resource.drain-cancel",
     .handle = command<proto::topics::parse_drain_cancel>,
     .right = Right::operate,
     .bound = large,
     .needs = Needs::commits,
     .names_targets = true,
     .in_instance = false},
    {.name = "resource.property",
     .handle = command<proto::topics::parse_property>,
     .right = Right::operate,
     .bound = large,
     .needs = Needs::commits,
     .names_targets = true},
    {.name = "resource.expiration",
     .handle = command<proto::topics::parse_expiration, engine::SetExpiration>,
     .right = Right::operate,
     .bound = large,
     .needs = Needs::commits},
    {.name = "resource.expiration-update",
     .handle = command<proto::topics::parse_expiration, engine::SetExpiration>,
     .right = Right::operate,
     .bound = large,
     .needs = Needs::commits},
    {.name = "resource.shrink",
     .handle = command<proto::topics::parse_shrink>,
     .right = Right::operate,
     .bound = large,
     .needs = Needs::commits,
     .names_targets = true,
     .in_instance = false},
    {.name = "resource.unshrink",
     .handle = command<proto::topics::parse_unshrink>,
     .right = Right::operate,
     .bound = large,
     .needs = Needs::commits,
     .names_targets = true,
     .in_instance = false},
    {.name = "resource.forget",
     .handle = command<proto::topics::parse_forget>,
     .right = Right::operate,
     .bound = large,
     .needs = Needs::commits,
     .names_targets = true,
     .in_instance = false},
    {.name = "resource.monitor-waitup",
     .handle = call<&Groups::monitor, &MonitorTopics::waitup>,
     .right = Right::own,
     .answer = Answer::later,
     .bound = large},
    {.name = "resource.monitor-force-down",
     .handle = call<&Groups::monitor, &MonitorTopics::force_down>,
     .right = Right::own,
     .bound = large,
     .needs = Needs::commits},
    {.name = "resource.wait",
     .handle = call<&Groups::wait, &WaitTopics::wait>,
     .right = Right::read,
     .answer = Answer::later,
     .bound = named_hosts},
    {.name = "resource.wait-cancel",
     .handle = cancel,
     .answer = Answer::none,
     .needs = Needs::log,
     .shows = Shows::nothing},
    {.name = "feasibility.check",
     .handle = call<&Groups::feasibility, &FeasibilityTopics::check>,
     .right = Right::read,
     .answer = Answer::later,
     .bound = jobspec,
     .needs = Needs::log,
     .shows = Shows::committed},
    {.name = "resource.reload",
     .handle = call<&Groups::reload, &ReloadTopics::reload>,
     .right = Right::operate,
     .answer = Answer::later,
     .bound = large,
     .needs = Needs::commits},
    {.name = "resource.status",
     .handle = call<&Groups::query, &QueryTopics::status>,
     .right = Right::read,
     .needs = Needs::log,
     .shows = Shows::committed},
    {.name = "resource.status-at",
     .handle = call<&Groups::past, &PastTopics::status_at>,
     .right = Right::read,
     .answer = Answer::later,
     .needs = Needs::log,
     .shows = Shows::committed,
     .in_instance = false},
    {.name = "resource.report",
     .handle = call<&Groups::past, &PastTopics::report>,
     .right = Right::read,
     .answer = Answer::later,
     .needs = Needs::log,
     .shows = Shows::committed,
     .in_instance = false},
    {.name = "resource.sched-status",
     .handle = call<&Groups::sched_status, &SchedStatus::ask>,
     .right = Right::read,
     .answer = Answer::later,
     .needs = Needs::log,
     .shows = Shows::committed},
    {.name = "resource.get",
     .handle = call<&Groups::query, &QueryTopics::inventory>,
     .right = Right::read,
     .needs = Needs::log,
     .shows = Shows::committed,
     .right_in_instance = Right::own},
    {.name = "resource.stats-get",
     .handle = call<&Groups::query, &QueryTopics::stats>,
     .right = Right::read,
     .needs = Needs::log,
     .shows = Shows::nothing,
     .right_in_instance = Right::none},
    {.name = "resource.stats-clear",
     .handle = call<&Groups::query, &QueryTopics::clear_stats>,
     .right = Right::own,
     .bound = large,
     .needs = Needs::log,
     .shows = Shows::nothing},
    {.name = "resource.metrics",
     .handle = call<&Groups::metrics, &MetricsTopics::metrics>,
     .right = Right::read,
     .needs = Needs::log,
     .shows = Shows::committed,
     .in_instance = false},
    {.name = "resource.ready",
     .handle = call<&Groups::metrics, &MetricsTopics::ready>,
     .right = Right::read,
     .needs = Needs::log,
     .shows = Shows::nothing,
     .in_instance = false},
    {.name = "resource.leader",
     .handle = of_cluster<&ClusterTopics::leader>,
     .needs = Needs::log,
     .shows = Shows::nothing,
     .in_instance = false},
    {.name = "resource.cluster",
     .handle = of_cluster<&ClusterTopics::members>,
     .right = Right::read,
     .answer = Answer::later,
     .needs = Needs::log,
     .shows = Shows::nothing,
     .in_instance = false},
    {.name = "resource.hand-over",
     .handle = of_cluster<&ClusterTopics::hand_over>,
     .right = Right::operate,
     .answer = Answer::later,
     .shows = Shows::nothing,
     .in_instance = false},
    {.name = "resource.ping",
     .handle = call<&Groups::query, &QueryTopics::ping>,
     .right = Right::read,
     .bound = echoed,
     .needs = Needs::log,
     .shows = Shows::nothing},
    {.name = "resource.version",
     .handle = call<&Groups::query, &QueryTopics::version>,
     .needs = Needs::log,
     .shows = Shows::nothing},
    {.name = "config.get",
     .handle = call<&Groups::query, &QueryTopics::configuration>,
     .right = Right::read,
     .needs = Needs::log,
     .shows = Shows::nothing},
    {.name = "resource.user-names",
     .handle = call<&Groups::query, &QueryTopics::user_names>,
     .right = Right::read,
     .needs = Needs::log,
     .shows = Shows::nothing,
     .in_instance = false},
    {.name = "attr.get",
     .handle = call<&Groups::query, &QueryTopics::attribute>,
     .right = Right::read,
     .needs = Needs::log,
     .shows = Shows::committed},
});

}  // namespace

std::span<const Topic> Topics::all() noexcept { return topics; }

const Topic* Topics::find(std::string_view name) noexcept {
  const auto found = std::ranges::find(all(), name, &Topic::name);
  return found == all().end() ? nullptr : &*found;
}

Content Topic::content_of(const proto::Message& request) const {
  try {
    module::LedgerCommand command;
    proto::read_object(request, bound.values,
                       [&](json_text::JsonReader& reader) { return read(reader, command); });
    return command;
  } catch (const Error& error) {
    return error;
  }
}

module::LedgerCommand Call::command() const {
  Content read = content == nullptr ? topic.content_of(request) : std::move(*content);
  if (const auto* error = std::get_if<Error>(&read)) throw Error(*error);
  return std::get<module::LedgerCommand>(std::move(read));
}

nlohmann::json Call::object() const { return proto::parse_object(request, topic.bound.values); }

nlohmann::json Call::optional_object() const {
  return proto::parse_optional_object(request, topic.bound.values);
}

peers::Right Gate::right_for(const Topic& topic, const peers::Principal& sender) noexcept {
  using peers::Right;
  if (!sender.of_instance)
    return topic.is_for_admins && sender.rights.has(Right::operate) ? Right::operate : topic.right;
  if (topic.right_in_instance) return *topic.right_in_instance;
  return topic.right == Right::none || topic.right == Right::read ? topic.right : Right::own;
}

Error Gate::denial(std::string_view topic, peers::Right right, const peers::Principal& sender) {
  if (sender.of_instance) {
    return {EPERM, right == peers::Right::own ? "Request requires owner credentials"
                                              : "Request rejected due to insufficient privilege"};
  }
  return {EPERM, fmt::format("{} requires the role {}", topic, peers::role_for(right))};
}

std::optional<Error> Gate::unbound(const Topic& topic, const peers::Principal& sender) {
  const bool changes = topic.right == peers::Right::operate || topic.right == peers::Right::schedule ||
                       topic.right == peers::Right::own;
  if (sender.hosts == nullptr || topic.names_targets || !changes) return std::nullopt;
  return Error(EPERM,
               fmt::format("{} concerns more than single hosts, and {} is bound to those that hosts in its "
                           "[[access.key]] names",
                           topic.name, sender.name));
}

Error Gate::unknown(std::string_view topic, const peers::Principal& sender) {
  return {ENOSYS, sender.of_instance ? fmt::format("Unknown service method '{}'", topic)
                                     : fmt::format("unknown topic: {}", topic)};
}

std::optional<Gate::Refusal> Gate::admit(peers::Clients::Client& client, const proto::Message& request,
                                         std::size_t kept, SteadyTime now) const {
  if (client.principal.of_instance) return std::nullopt;
  const auto rate = static_cast<double>(limits_.requests_per_second);
  const double left = client.requests.take(now, {rate, rate}, 1);
  // A debt of more than one second's requests shows that the client keeps sending although it is refused.
  if (left < -rate) return Refusal{Error(EBUSY, "it keeps exceeding limits.requests-per-second"), true};
  if (left < 0) {
    return Refusal{
        Error(EBUSY, fmt::format("more than {} requests in a second", limits_.requests_per_second)), false};
  }
  const std::size_t outstanding = client.waiting + client.backlog.size() + kept;
  if (outstanding >= limits_.outstanding_requests && !request.has(proto::flag::noresponse)) {
    return Refusal{Error(EBUSY, fmt::format("{} requests wait already", outstanding)), false};
  }
  return std::nullopt;
}

void Gate::deny(const peers::Principal& sender, const proto::Message& request, const Error& error) {
  stats_.denied();
  if (const auto before = denials_.admit()) {
    // The principal of every sender of an instance is its owner, so log the user of the request.
    const std::string name = sender.of_instance ? fmt::format("uid {}", request.userid) : sender.name;
    os::log_warning("denied {} to {}{}", request.topic, name, *before);
  }
  throw error;
}

void Gate::check_right(const peers::Principal& sender, const proto::Message& request, peers::Right right) {
  if (right == peers::Right::none || peers::rights_of_request(sender, request).has(right)) return;
  deny(sender, request, denial(request.topic, right, sender));
}

void Gate::check_bound(const peers::Principal& sender, const proto::Message& request, const Topic& topic) {
  if (const std::optional<Error> beyond = unbound(topic, sender)) deny(sender, request, *beyond);
}

void Gate::check_form(const proto::Message& request, const Topic& topic, const peers::Principal& sender,
                      std::size_t targets) {
  const std::size_t size = request.payload ? request.payload->size() : 0;
  const std::size_t most = topic.bound.bytes + topic.bound.bytes_a_target * targets;
  if (size > most) {
    throw Error(EMSGSIZE, fmt::format("{}: a payload of {} bytes, more than {}", request.topic, size, most));
  }
  const bool may_lack_flag = sender.of_instance && topic.name == "resource.acquire";
  if (topic.answer == Answer::stream && !may_lack_flag && !request.has(proto::flag::streaming)) {
    throw Error(EPROTO, request.topic + ": the request must have the streaming flag");
  }
}

}  // namespace resourced::daemon::service

#include "daemon/service/topics.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "daemon/service/service.hpp"
#include "os/log.hpp"
#include "proto/message.hpp"
#include "proto/topics/acquire.hpp"
#include "proto/topics/allocations.hpp"
#include "proto/topics/diagnostics.hpp"
#include "proto/topics/operate.hpp"

namespace resourced::daemon::service {
namespace {

constexpr std::size_t kib = 1024;
constexpr Bound small{16 * kib, 0, proto::max_request_values};
constexpr Bound large{1024 * kib, 0, proto::max_request_values};
// The payload of a ping is sent back.
constexpr Bound echoed{64 * kib, 0, proto::topics::max_ping_values};
// Enough to name every host, with names of the usual length; ranges take less.
constexpr Bound named_hosts{64 * kib, 8, proto::max_request_values};
// An R with a thousand ranks and hosts that are named one by one; ranges take less. Its work follows the
// bytes.
constexpr Bound ledger{16 * kib, 0, proto::topics::max_ledger_values};
// Parsed on the thread of FeasibilityChecks.
constexpr Bound jobspec{1024 * kib, 0, proto::topics::max_feasibility_values};

}  // namespace

template <auto Group, auto Handler>
void Topics::call(Service& service, const Call& call) {
  (service.*Group.*Handler)(call);
}

template <auto Parse, class Input = module::Command>
void Topics::command(Service& service, const Call& call) {
  service.executor_.step(Input{Parse(call.object())}, call.actor());
  service.requests_.respond(call);
}

std::span<const Topic> Topics::all() noexcept {
  using peers::Right;
  using S = Service;
  using Acquire = AcquireTopics;
  using Agent = AgentTopics;
  using Allocation = AllocationTopics;
  using Cluster = ClusterTopics;
  using Journal = JournalTopics;
  using Metrics = MetricsTopics;
  using Monitor = MonitorTopics;
  using Past = PastTopics;
  using Query = QueryTopics;
  using Wait = WaitTopics;
  constexpr auto cancel = [](Service& service, const Call& call) { service.cancel(call); };
  constexpr auto disconnect = [](Service& service, const Call& call) { service.disconnect(call); };
  constexpr std::optional<Right> as_usual;
  constexpr bool in_instance = true;
  constexpr bool not_in_instance = false;
  constexpr Needs leader = Needs::leader;
  constexpr Needs change = Needs::commits;
  constexpr Needs log = Needs::log;
  constexpr Stalled refused = Stalled::refused;
  constexpr Stalled served = Stalled::served;
  constexpr Stalled from_log = Stalled::from_log;
  static constexpr auto topics = std::to_array<Topic>({
      {"resource.acquire", Right::schedule, Answer::stream, small, call<&S::acquire_, &Acquire::acquire>},
      {"resource.acquire-cancel", Right::none, Answer::once, small, cancel, as_usual, in_instance, log,
       served},
      {"resource.alloc", Right::schedule, Answer::once, ledger, call<&S::allocations_, &Allocation::alloc>,
       as_usual, not_in_instance, change},
      {"resource.free", Right::schedule, Answer::once, ledger, call<&S::allocations_, &Allocation::free>,
       as_usual, not_in_instance, change},
      {"resource.force-free", Right::operate, Answer::once, ledger, command<proto::topics::parse_free>,
       as_usual, not_in_instance, change},
      {"resource.allocations", Right::read, Answer::once, named_hosts,
       call<&S::allocations_, &Allocation::list>, as_usual, not_in_instance, leader, refused},
      {"resource.acquire-mute", Right::operate, Answer::once, large, call<&S::acquire_, &Acquire::mute>},
      {"resource.peers", Right::read, Answer::once, named_hosts, call<&S::acquire_, &Acquire::peers>,
       as_usual, not_in_instance, leader, refused},
      {"resource.journal", Right::read, Answer::stream, named_hosts, call<&S::journal_, &Journal::journal>,
       Right::own, in_instance, log, served},
      {"resource.journal-cancel", Right::none, Answer::once, small, cancel, as_usual, in_instance, log,
       served},
      {"resource.agent", Right::report, Answer::stream, small, call<&S::agents_, &Agent::hello>, as_usual,
       not_in_instance},
      {"resource.agent-cancel", Right::none, Answer::once, small, cancel, as_usual, not_in_instance, log,
       served},
      {"resource.agent-beat", Right::report, Answer::once, small, call<&S::agents_, &Agent::beat>, as_usual,
       not_in_instance},
      {"resource.agent-health", Right::report, Answer::once, small, call<&S::agents_, &Agent::health>,
       as_usual, not_in_instance},
      {"resource.disconnect", Right::none, Answer::once, small, disconnect, as_usual, in_instance, log,
       served},
      {"resource.drain", Right::operate, Answer::once, large, command<proto::topics::parse_drain>, as_usual,
       in_instance, change},
      {"resource.undrain", Right::operate, Answer::once, large, command<proto::topics::parse_undrain>,
       as_usual, in_instance, change},
      {"resource.property", Right::operate, Answer::once, large, command<proto::topics::parse_property>,
       as_usual, in_instance, change},
      {"resource.expiration", Right::operate, Answer::once, large,
       command<proto::topics::parse_expiration, engine::SetExpiration>, as_usual, in_instance, change},
      {"resource.expiration-update", Right::operate, Answer::once, large,
       command<proto::topics::parse_expiration, engine::SetExpiration>, as_usual, in_instance, change},
      {"resource.shrink", Right::operate, Answer::once, large, command<proto::topics::parse_shrink>, as_usual,
       not_in_instance, change},
      {"resource.unshrink", Right::operate, Answer::once, large, command<proto::topics::parse_unshrink>,
       as_usual, not_in_instance, change},
      {"resource.monitor-waitup", Right::own, Answer::later, large, call<&S::monitor_, &Monitor::waitup>},
      {"resource.monitor-force-down", Right::own, Answer::once, large,
       call<&S::monitor_, &Monitor::force_down>, as_usual, in_instance, change},
      {"resource.wait", Right::read, Answer::later, named_hosts, call<&S::wait_, &Wait::wait>},
      {"resource.wait-cancel", Right::none, Answer::once, small, cancel, as_usual, in_instance, log, served},
      {"feasibility.check", Right::read, Answer::later, jobspec,
       call<&S::feasibility_, &FeasibilityTopics::check>, as_usual, in_instance, log, refused},
      {"resource.reload", Right::operate, Answer::later, large, call<&S::reload_, &ReloadTopics::reload>,
       as_usual, in_instance, change},
      {"resource.status", Right::read, Answer::once, small, call<&S::query_, &Query::status>, as_usual,
       in_instance, log, from_log},
      {"resource.status-at", Right::read, Answer::later, small, call<&S::past_, &Past::status_at>, as_usual,
       not_in_instance, log, served},
      {"resource.report", Right::read, Answer::later, small, call<&S::past_, &Past::report>, as_usual,
       not_in_instance, log, served},
      {"resource.sched-status", Right::read, Answer::later, small, call<&S::sched_status_, &SchedStatus::ask>,
       as_usual, in_instance, log, from_log},
      {"resource.get", Right::read, Answer::once, small, call<&S::query_, &Query::inventory>, Right::own,
       in_instance, log, from_log},
      {"resource.stats-get", Right::read, Answer::once, small, call<&S::query_, &Query::stats>, Right::none,
       in_instance, log, served},
      {"resource.stats-clear", Right::own, Answer::once, large, call<&S::query_, &Query::clear_stats>,
       as_usual, in_instance, log, served},
      {"resource.metrics", Right::read, Answer::once, small, call<&S::metrics_, &Metrics::metrics>, as_usual,
       not_in_instance, log, from_log},
      {"resource.ready", Right::read, Answer::once, small, call<&S::metrics_, &Metrics::ready>, as_usual,
       not_in_instance, log, served},
      {"resource.leader", Right::none, Answer::once, small, call<&S::cluster_, &Cluster::leader>, as_usual,
       not_in_instance, log, served},
      {"resource.cluster", Right::read, Answer::later, small, call<&S::cluster_, &Cluster::members>, as_usual,
       not_in_instance, log, served},
      {"resource.hand-over", Right::operate, Answer::later, small, call<&S::cluster_, &Cluster::hand_over>,
       as_usual, not_in_instance, leader, served},
      {"resource.ping", Right::read, Answer::once, echoed, call<&S::query_, &Query::ping>, as_usual,
       in_instance, log, served},
      {"config.get", Right::read, Answer::once, small, call<&S::query_, &Query::configuration>, as_usual,
       in_instance, log, served},
      {"resource.user-names", Right::read, Answer::once, small, call<&S::query_, &Query::user_names>,
       as_usual, not_in_instance, log, served},
      {"attr.get", Right::read, Answer::once, small, call<&S::query_, &Query::attribute>, as_usual,
       in_instance, log, from_log},
  });
  return topics;
}

const Topic* Topics::find(std::string_view name) noexcept {
  const auto found = std::ranges::find(all(), name, &Topic::name);
  return found == all().end() ? nullptr : &*found;
}

nlohmann::json Call::object() const { return proto::parse_object(request, topic.bound.values); }

nlohmann::json Call::optional_object() const {
  return proto::parse_optional_object(request, topic.bound.values);
}

peers::Right Gate::right_for(const Topic& topic, const peers::Principal& sender) noexcept {
  using peers::Right;
  if (!sender.of_instance) return topic.right;
  if (topic.in_instance) return *topic.in_instance;
  return topic.right == Right::none || topic.right == Right::read ? topic.right : Right::own;
}

Error Gate::denial(std::string_view topic, peers::Right right, const peers::Principal& sender) {
  if (sender.of_instance) {
    return {EPERM, right == peers::Right::own ? "Request requires owner credentials"
                                              : "Request rejected due to insufficient privilege"};
  }
  return {EPERM, fmt::format("{} requires the role {}", topic, peers::role_for(right))};
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
  // A debt of one second's requests: the client keeps sending although it is refused.
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

void Gate::check_right(const peers::Principal& sender, const proto::Message& request, peers::Right right) {
  if (right == peers::Right::none || peers::rights_of_request(sender, request).has(right)) return;
  stats_.denied();
  if (const auto before = denials_.admit()) {
    // The principal of every sender of an instance is its owner, so log the user of the request.
    const std::string name = sender.of_instance ? fmt::format("uid {}", request.userid) : sender.name;
    os::log_warning("denied {} to {} ({} more since the last such line)", request.topic, name, *before);
  }
  throw denial(request.topic, right, sender);
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

#include "daemon/service/topics.hpp"

#include <algorithm>
#include <array>

#include "daemon/service/service.hpp"
#include "proto/rpc.hpp"
#include "proto/topics/acquire.hpp"
#include "proto/topics/diagnostics.hpp"

namespace resourced::daemon::service {
namespace {

constexpr std::size_t kib = 1024;
constexpr Bound small{16 * kib, 0, proto::max_request_values};
constexpr Bound large{1024 * kib, 0, proto::max_request_values};
// The payload of a ping is sent back.
constexpr Bound echoed{64 * kib, 0, proto::topics::max_ping_values};
// Enough to name every host, with names of the usual length; ranges take less.
constexpr Bound named_hosts{64 * kib, 8, proto::max_request_values};
// Parsed on the thread of FeasibilityChecks.
constexpr Bound jobspec{1024 * kib, 0, proto::topics::max_feasibility_values};

}  // namespace

template <auto Group, auto Handler>
void Topics::call(Service& service, const Call& call) {
  (service.*Group.*Handler)(call);
}

std::span<const Topic> Topics::all() noexcept {
  using peers::Right;
  using S = Service;
  using Acquire = AcquireTopics;
  using Agent = AgentTopics;
  using Journal = JournalTopics;
  using Monitor = MonitorTopics;
  using Operator = OperatorTopics;
  using Query = QueryTopics;
  constexpr auto cancel = [](Service& service, const Call& call) { service.cancel(call); };
  constexpr auto disconnect = [](Service& service, const Call& call) { service.disconnect(call); };
  static constexpr std::array<Topic, 27> topics{{
      {"resource.acquire", Right::schedule, Answer::stream, small, call<&S::acquire_, &Acquire::acquire>},
      {"resource.acquire-cancel", Right::none, Answer::once, small, cancel},
      {"resource.acquire-mute", Right::operate, Answer::once, large, call<&S::acquire_, &Acquire::mute>},
      {"resource.journal", Right::read, Answer::stream, named_hosts, call<&S::journal_, &Journal::journal>},
      {"resource.journal-cancel", Right::none, Answer::once, small, cancel},
      {"resource.agent", Right::report, Answer::stream, small, call<&S::agents_, &Agent::hello>},
      {"resource.agent-cancel", Right::none, Answer::once, small, cancel},
      {"resource.agent-beat", Right::report, Answer::once, small, call<&S::agents_, &Agent::beat>},
      {"resource.disconnect", Right::none, Answer::once, small, disconnect},
      {"resource.drain", Right::operate, Answer::once, large, call<&S::operator_, &Operator::drain>},
      {"resource.undrain", Right::operate, Answer::once, large, call<&S::operator_, &Operator::undrain>},
      {"resource.property", Right::operate, Answer::once, large, call<&S::operator_, &Operator::property>},
      {"resource.expiration", Right::operate, Answer::once, large,
       call<&S::operator_, &Operator::expiration>},
      {"resource.expiration-update", Right::operate, Answer::once, large,
       call<&S::operator_, &Operator::expiration>},
      {"resource.shrink", Right::operate, Answer::once, large, call<&S::operator_, &Operator::shrink>},
      {"resource.monitor-waitup", Right::own, Answer::later, large, call<&S::monitor_, &Monitor::waitup>},
      {"resource.monitor-force-down", Right::own, Answer::once, large,
       call<&S::monitor_, &Monitor::force_down>},
      {"feasibility.check", Right::read, Answer::later, jobspec,
       call<&S::feasibility_, &FeasibilityTopics::check>},
      {"resource.reload", Right::operate, Answer::later, large, call<&S::reload_, &ReloadTopics::reload>},
      {"resource.status", Right::read, Answer::once, small, call<&S::query_, &Query::status>},
      {"resource.sched-status", Right::read, Answer::once, small, call<&S::query_, &Query::sched_status>},
      {"resource.get", Right::read, Answer::once, small, call<&S::query_, &Query::inventory>},
      {"resource.stats-get", Right::read, Answer::once, small, call<&S::query_, &Query::stats>},
      {"resource.stats-clear", Right::own, Answer::once, large, call<&S::query_, &Query::clear_stats>},
      {"resource.ping", Right::read, Answer::once, echoed, call<&S::query_, &Query::ping>},
      {"config.get", Right::read, Answer::once, small, call<&S::query_, &Query::configuration>},
      {"attr.get", Right::read, Answer::once, small, call<&S::query_, &Query::attribute>},
  }};
  return topics;
}

const Topic* Topics::find(std::string_view name) noexcept {
  const auto found = std::ranges::find(all(), name, &Topic::name);
  return found == all().end() ? nullptr : &*found;
}

}  // namespace resourced::daemon::service

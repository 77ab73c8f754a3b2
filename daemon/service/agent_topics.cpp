#include "daemon/service/agent_topics.hpp"

#include <cerrno>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "proto/rpc.hpp"
#include "proto/topics/liveness.hpp"

namespace resourced::daemon::service {
namespace {

proto::Payload answer_of(const proto::AgentAnswer& answer) {
  return proto::make_payload(proto::encode_agent_answer(answer));
}

}  // namespace

AgentTopics::AgentTopics(Executor& executor, Requests& requests,
                         const std::optional<Agents::Settings>& settings, std::function<double()> uptime,
                         std::function<void(double)> wake_at)
    : executor_(executor), requests_(requests), uptime_(std::move(uptime)), wake_at_(std::move(wake_at)) {
  if (settings) agents_.emplace(executor_, *settings);
}

Agents& AgentTopics::agents() {
  if (!agents_) throw Error(ENOSYS, "node agents are not watched here (monitor.mode is static)");
  return *agents_;
}

void AgentTopics::hello(const Call& call) {
  const NodeReport report = proto::parse_agent_hello(call.object());
  requests_.keep(call, [&](proto::RequestKey key) {
    if (agents_ && !agents_->wants(report)) {
      // Before anything follows from it: a node is not drained for cores that a second look will find.
      requests_.respond(key, answer_of({.norestrict = agents_->norestrict()}));
      return requests_.end(key, Error(ENODATA, "another report of this node is wanted"));
    }
    const Agents::Welcome welcome = agents().hello(key, report, uptime_());
    requests_.become(key, streams::NodeAgent{welcome.agent});
    if (welcome.replaced) {
      requests_.end(*welcome.replaced, Error(EEXIST, "another agent speaks for " + report.hostname + " now"));
    }
    requests_.respond(key, answer_of({welcome.rank, agents().interval()}));
    // This may be the one that the inventory waits for.
    if (!executor_.module().defined()) agents().tick(uptime_());
  });
}

void AgentTopics::beat(const Call& call) {
  Agents& watched = agents();
  const double now = uptime_();
  const auto beat = [&](const streams::Stream& stream) {
    if (const auto* agent = std::get_if<streams::NodeAgent>(&stream)) watched.beat(agent->agent, now);
  };
  if (call.request.has(proto::flag::payload)) {
    const auto* entry = requests_.registry().find({call.client, proto::parse_agent_beat(call.object())});
    if (entry != nullptr) beat(entry->stream);
  } else {
    requests_.registry().for_each(call.client, beat);
  }
  requests_.respond(call);
}

void AgentTopics::configure(const Agents::Settings& settings) {
  if (agents_) agents_->configure(settings);
}

void AgentTopics::discover(const DiscoverySettings& settings, RecordedHosts recorded,
                           std::function<void(const ResourceSet&)> define) {
  agents().discover(settings, std::move(recorded), uptime_(), std::move(define));
}

void AgentTopics::exclude_from_discovery(const Hostlist& hosts) {
  if (!agents_) return;
  agents_->exclude(hosts);
  // Fewer agents may be enough now.
  if (!executor_.module().defined()) agents_->tick(uptime_());
}

void AgentTopics::share(Presence& presence) {
  if (agents_) agents_->share(presence);
}

void AgentTopics::on_defined() {
  if (!agents_) return;
  for (const auto& [key, rank, refused] : agents_->place_waiting(uptime_())) {
    if (refused) {
      requests_.end(key, *refused);
    } else {
      requests_.respond(key, answer_of({rank, agents_->interval()}));
    }
  }
}

void AgentTopics::on_time() {
  awake_at_.reset();
  if (agents_) agents_->tick(uptime_());
}

// A timer that fires too early finds nothing to do and asks again; so only an earlier time is worth a call.
void AgentTopics::schedule() {
  if (!agents_) return;
  const auto deadline = agents_->next_deadline();
  if (!deadline || (awake_at_ && *awake_at_ <= *deadline)) return;
  awake_at_ = deadline;
  wake_at_(*deadline);
}

std::vector<ReloadCommand::Drain> AgentTopics::verify_included(const IdSet& exclude) const {
  std::vector<ReloadCommand::Drain> drains;
  if (!agents_) return drains;
  for (auto& [rank, reason] : agents_->verify_included(executor_.module().excluded() - exclude)) {
    drains.push_back({IdSet::range(rank, rank), std::move(reason)});
  }
  return drains;
}

void AgentTopics::force_down(const IdSet& ranks) {
  if (agents_) agents_->force_down(ranks, uptime_());
}

void AgentTopics::end(const IdSet& ranks) {
  if (!agents_) return;
  for (const proto::RequestKey request : agents_->forget(ranks)) {
    requests_.end(request, Error(EINVAL, "this node has left the instance for good"));
  }
}

void AgentTopics::begin_again() {
  if (!agents_) return;
  for (const proto::RequestKey request : agents_->begin_again(uptime_())) {
    requests_.end(request, Error(EAGAIN, "another R was loaded: say hello again"));
  }
}

void AgentTopics::release(const streams::NodeAgent& gone, End end) {
  if (!agents_) return;
  agents_->end(gone.agent, end == End::cancelled ? Agents::End::farewell : Agents::End::lost, uptime_());
}

}  // namespace resourced::daemon::service

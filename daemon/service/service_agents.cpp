// The topics of node agents, and what follows from their inventory and their silence.
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "daemon/service/service.hpp"
#include "proto/rpc.hpp"
#include "proto/topics/liveness.hpp"

namespace resourced::daemon::service {

using proto::Message;

Agents& Service::agents() {
  if (!agents_) throw Error(ENOSYS, "node agents are not watched here (monitor.mode is static)");
  return *agents_;
}

void Service::agent(proto::ClientId client, const Message& request) {
  const NodeReport report = proto::parse_agent_hello(proto::parse_object(request));
  const proto::RequestKey key = requests_.add(client, request);
  if (agents_ && !agents_->wants(report)) {
    // Before anything follows from it: a node is not drained for cores that a second look will find.
    respond(client, request,
            proto::make_payload(proto::encode_agent_answer({.norestrict = agents_->norestrict()})));
    end_stream(key, Error(ENODATA, "another report of this node is wanted"));
    return;
  }
  try {
    const Agents::Welcome welcome = agents().hello(key, report, uptime_());
    if (welcome.replaced) {
      end_stream(*welcome.replaced, Error(EEXIST, "another agent speaks for " + report.hostname + " now"));
    }
    respond(client, request,
            proto::make_payload(proto::encode_agent_answer({welcome.rank, agents().interval()})));
    // This may be the one that the inventory waits for.
    if (!executor_.module().defined()) agents().tick(uptime_());
  } catch (const Error&) {
    requests_.take(key);
    throw;
  }
}

void Service::agent_beat(proto::ClientId client, const Message& request) {
  const double now = uptime_();
  if (request.has(proto::flag::payload)) {
    agents().beat({client, proto::parse_agent_beat(proto::parse_object(request))}, now);
  } else {
    agents().beat(client, now);
  }
  respond(client, request);
}

void Service::end_agents(const IdSet& ranks) {
  if (!agents_) return;
  for (const proto::RequestKey request : agents_->forget(ranks)) {
    end_stream(request, Error(EINVAL, "this node has left the instance for good"));
  }
}

void Service::set_agents(const Agents::Settings& settings) {
  if (!agents_) return;
  agents_->configure(settings);
  schedule();
}

void Service::discover(const DiscoverySettings& settings, RecordedHosts recorded,
                       std::function<void(const ResourceSet&)> define) {
  agents().discover(settings, std::move(recorded), uptime_(), std::move(define));
  schedule();
}

void Service::exclude_from_discovery(const Hostlist& hosts) {
  if (!agents_) return;
  agents_->exclude(hosts);
  // Fewer agents may be enough now.
  if (!executor_.module().defined()) agents_->tick(uptime_());
  schedule();
}

std::vector<ReloadCommand::Drain> Service::verify_included(const IdSet& exclude) const {
  std::vector<ReloadCommand::Drain> drains;
  if (!agents_) return drains;
  for (auto& [rank, reason] : agents_->verify_included(executor_.module().excluded() - exclude)) {
    drains.push_back({IdSet::range(rank, rank), std::move(reason)});
  }
  return drains;
}

void Service::on_defined() {
  if (agents_) {
    for (const auto& [key, rank, refused] : agents_->place_waiting(uptime_())) {
      if (refused) {
        end_stream(key, *refused);
      } else if (const Message* request = requests_.find(key)) {
        respond(key.client, *request,
                proto::make_payload(proto::encode_agent_answer({rank, agents_->interval()})));
      }
    }
  }
  for (const auto& [key, partition] : std::exchange(early_acquires_, {})) hold(key, partition);
  flush();
  schedule();
}

void Service::on_time() {
  const transport::LoopHold hold(&holds_, "node agents");
  awake_at_.reset();
  if (agents_) agents_->tick(uptime_());
  flush();
  schedule();
}

// A timer that fires too early finds nothing to do and asks again; so only an earlier time is worth a call.
void Service::schedule() {
  if (!agents_) return;
  const auto deadline = agents_->next_deadline();
  if (!deadline || (awake_at_ && *awake_at_ <= *deadline)) return;
  awake_at_ = deadline;
  wake_at_(*deadline);
}

}  // namespace resourced::daemon::service

#include "daemon/service/agent_topics.hpp"

#include <cerrno>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "os/log.hpp"
#include "proto/message.hpp"
#include "proto/topics/liveness.hpp"

namespace resourced::daemon::service {
namespace {

proto::Payload answer_of(const proto::topics::AgentAnswer& answer) {
  return proto::make_payload(proto::topics::encode_agent_answer(answer));
}

}  // namespace

// Logs a refusal here too: the agent logs the reason on a node that nobody may look at.
void AgentTopics::hello(const Call& call) {
  try {
    admit(call);
  } catch (const Error& error) {
    if (const auto before = refused_.admit()) {
      os::log_warning("refused an agent of {}: {}{}", call.sender.name, error.what(), *before);
    }
    throw;
  }
}

void AgentTopics::admit(const Call& call) {
  nodes::NodeReport report = proto::topics::parse_agent_hello(call.object());
  const nodes::Settings& settings = executor_.engine().nodes().watched();
  call.sender.check_speaks_for(report.hostname);
  requests_.keep(call, [&](proto::RequestKey key) {
    if (!settings.wants(report)) {
      // Refuse the report before it takes effect: its node must not be drained for cores that the next has.
      requests_.respond(key, answer_of({.norestrict = settings.norestrict}));
      return requests_.end(key, Error(ENODATA, "another report of this node is wanted"));
    }
    const nodes::AgentId agent = ++last_;
    agents_.emplace(agent, Agent{key, report.hostname});
    requests_.become(key, streams::NodeAgent{agent});
    executor_.step(engine::AgentHello{agent, static_cast<nodes::ConnectionId>(key.client), std::move(report),
                                      call.sender.origin()});
  });
}

void AgentTopics::beat(const Call& call) {
  (void)executor_.engine().nodes().watched();
  const auto beat = [&](const streams::Stream& stream) {
    if (const auto* agent = std::get_if<streams::NodeAgent>(&stream)) {
      executor_.step(engine::AgentBeat{agent->agent});
    }
  };
  if (!call.request.has(proto::flag::payload)) {
    requests_.registry().for_each(call.client, beat);
  } else if (const auto* entry =
                 requests_.registry().find({call.client, proto::topics::parse_agent_beat(call.object())})) {
    beat(entry->stream);
  }
  requests_.respond(call);
}

void AgentTopics::health(const Call& call) {
  (void)executor_.engine().nodes().watched();
  const proto::topics::AgentHealth health = proto::topics::parse_agent_health(call.object());
  // Accept one node in each request, as a thousand drains would hold the loop for long.
  std::vector<nodes::AgentId> agents;
  const auto add = [&](const streams::Stream& stream) {
    if (const auto* agent = std::get_if<streams::NodeAgent>(&stream)) agents.push_back(agent->agent);
  };
  if (!health.matchtag) {
    requests_.registry().for_each(call.client, add);
  } else if (const auto* entry = requests_.registry().find({call.client, *health.matchtag})) {
    add(entry->stream);
  }
  if (agents.empty()) throw Error(ENOENT, "no such agent has said hello on this connection");
  if (agents.size() > 1) {
    throw Error(EINVAL, fmt::format("{} agents have said hello on this connection: name one by its matchtag",
                                    agents.size()));
  }
  executor_.step(engine::AgentHealth{agents.front(), health.report});
  requests_.respond(call);
}

void AgentTopics::tell(const nodes::AgentNews& news) {
  const auto found = agents_.find(news.agent);
  if (found == agents_.end()) return;
  const proto::RequestKey key = found->second.key;
  if (news.end) {
    requests_.end(key, *news.end);
  } else {
    const Seconds interval = executor_.engine().nodes().watched().beat_interval();
    requests_.respond(key, answer_of({news.rank, interval, std::nullopt, news.gated}));
  }
}

void AgentTopics::check_senders(peers::Clients& clients) {
  std::vector<std::pair<proto::RequestKey, Error>> ended;
  for (const auto& [id, agent] : agents_) {
    const peers::Clients::Client* const known = clients.find(agent.key.client);
    if (known == nullptr) continue;
    try {
      known->principal.check_speaks_for(agent.host);
    } catch (const Error& error) {
      ended.emplace_back(agent.key, error);
    }
  }
  for (const auto& [key, error] : ended) requests_.end(key, error);
}

void AgentTopics::release(const streams::NodeAgent& gone, End end) {
  using AgentEnd = nodes::Nodes::End;
  agents_.erase(gone.agent);
  // The engine ignores this end if it has ended the agent itself.
  executor_.step(engine::AgentEnd{gone.agent, end == End::cancelled ? AgentEnd::farewell : AgentEnd::lost});
}

}  // namespace resourced::daemon::service

// The topics of node agents: pass their reports to the engine, and the engine's answers to them. Without
// agents (monitor.mode static), where every target is always online, these topics are refused.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "core/nodes/nodes.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/peers/limits.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/registry.hpp"

namespace resourced::daemon::service {

class AgentTopics {
 public:
  AgentTopics(Executor& executor, Requests& requests) : executor_(executor), requests_(requests) {}

  void hello(const Call& call);
  void beat(const Call& call);
  void health(const Call& call);

  /// Sends news from the engine to an agent.
  void tell(const nodes::AgentNews& news);
  /// Ends those agents of these clients that may not speak for their hosts any more.
  void check_senders(peers::Clients& clients);
  /// Called when the request of an agent has ended.
  void release(const streams::NodeAgent& gone, End end);

 private:
  void admit(const Call& call);

  Executor& executor_;
  Requests& requests_;
  struct Agent {
    proto::RequestKey key;
    std::string host;
  };
  std::unordered_map<nodes::AgentId, Agent> agents_;
  nodes::AgentId last_ = 0;
  peers::RateLimit refused_;
};

}  // namespace resourced::daemon::service

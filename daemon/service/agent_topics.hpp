// The topics of node agents: passes their reports to the engine and the engine's answers to them. Without
// agents (monitor.mode static), where every target is always online, these topics are refused.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/nodes/nodes.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/peers/access.hpp"
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

  /// Begins to discover the inventory from the agents' reports. `define` passes the result to the engine.
  void discover(const nodes::DiscoverySettings& settings, nodes::RecordedHosts recorded,
                std::function<void(const rset::ResourceSet&)> define);
  /// The inventory that the agents have reported.
  void on_discovered(const rset::ResourceSet& inventory) const { define_(inventory); }
  /// Sends news from the engine to an agent.
  void tell(const nodes::AgentNews& news);
  /// Ends the agents that may not speak for their hosts any more. `sender` returns null for a client that is
  /// gone.
  void check_senders(const std::function<const peers::Principal*(proto::ClientId)>& sender);
  /// An agent's request has ended.
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
  std::function<void(const rset::ResourceSet&)> define_;
  peers::RateLimit refused_;
};

}  // namespace resourced::daemon::service

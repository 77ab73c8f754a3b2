// The topics of node agents: what they say goes to the engine, and what the engine has for them goes back.
// Without agents, where every target is always online, each of them is refused.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "core/nodes/nodes.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/registry.hpp"

namespace resourced::daemon::service {

class AgentTopics {
 public:
  AgentTopics(Executor& executor, Requests& requests) : executor_(executor), requests_(requests) {}

  void hello(const Call& call);
  void beat(const Call& call);

  /// The inventory is what node agents report. `define` takes it to the engine.
  void discover(const nodes::DiscoverySettings& settings, nodes::RecordedHosts recorded,
                std::function<void(const rset::ResourceSet&)> define);
  /// The inventory that they have told.
  void on_discovered(const rset::ResourceSet& inventory) const { define_(inventory); }
  /// News of the engine for an agent.
  void tell(const nodes::AgentNews& news);
  /// An agent's request is no more.
  void release(const streams::NodeAgent& gone, End end);

 private:
  Executor& executor_;
  Requests& requests_;
  std::unordered_map<nodes::AgentId, proto::RequestKey> keys_;
  nodes::AgentId last_ = 0;
  std::function<void(const rset::ResourceSet&)> define_;
};

}  // namespace resourced::daemon::service

// resource.monitor-waitup and resource.monitor-force-down: wait for targets to be online, and take them
// offline.
#pragma once

#include "daemon/service/agent_topics.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/registry.hpp"
#include "daemon/streams/waitups.hpp"

namespace resourced::daemon::service {

class MonitorTopics {
 public:
  MonitorTopics(Executor& executor, Requests& requests, AgentTopics& agents)
      : executor_(executor), requests_(requests), agents_(agents) {}

  void waitup(const Call& call);
  /// The agents of these targets count for nothing until they say hello again.
  void force_down(const Call& call);

  /// The state has changed: answers the requests that wait for as many targets as are online now, and refuses
  /// those that wait for more than there are.
  void on_changed();
  /// A request waits no longer.
  void release(proto::RequestKey key, const streams::Waitup& waitup) { waitups_.remove(key, waitup.online); }

 private:
  Executor& executor_;
  Requests& requests_;
  AgentTopics& agents_;
  streams::Waitups waitups_;
};

}  // namespace resourced::daemon::service

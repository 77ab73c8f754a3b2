// The groups of topics, each with its state, and what their handlers share.
#pragma once

#include "daemon/service/acquire_topics.hpp"
#include "daemon/service/agent_topics.hpp"
#include "daemon/service/allocation_topics.hpp"
#include "daemon/service/cluster_topics.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/feasibility_topics.hpp"
#include "daemon/service/journal_topics.hpp"
#include "daemon/service/metrics_topics.hpp"
#include "daemon/service/monitor_topics.hpp"
#include "daemon/service/past_topics.hpp"
#include "daemon/service/query_topics.hpp"
#include "daemon/service/reload_topics.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/service/sched_status.hpp"
#include "daemon/service/wait_topics.hpp"

namespace resourced::daemon::service {

struct Groups {
  Executor& executor;
  Requests& requests;
  ClusterTopics& cluster;

  AcquireTopics acquire;
  AllocationTopics allocations;
  JournalTopics journal;
  AgentTopics agents;
  MonitorTopics monitor;
  WaitTopics wait;
  QueryTopics query;
  PastTopics past;
  MetricsTopics metrics;
  // Declared last, so that their threads end before the other members are destroyed.
  SchedStatus sched_status;
  FeasibilityTopics feasibility;
  ReloadTopics reload;
};

}  // namespace resourced::daemon::service

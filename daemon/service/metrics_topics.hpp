// resource.metrics, the daemon's metrics in the format of Prometheus, and resource.ready. The counts follow
// what happens, so an answer costs by partitions, states and topics; only one with all targets costs by
// their number. Answers are kept for a tenth of a second, and those with all targets for a second.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "core/engine/record.hpp"
#include "core/time.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/service/cluster_topics.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/histogram.hpp"
#include "daemon/service/journal_topics.hpp"
#include "daemon/service/metrics_text.hpp"
#include "daemon/service/node_counts.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/service/stats.hpp"
#include "daemon/service/topics.hpp"

namespace resourced::daemon::service {

class MetricsTopics {
 public:
  /// `uptime` is the steady time, `last_event` the last event that this daemon knows.
  MetricsTopics(const Executor& executor, Requests& requests, const Stats& stats, const Gate& gate,
                const JournalTopics& journal, const ClusterTopics& cluster,
                std::function<SteadyTime()> uptime, std::function<log::Sequence()> last_event);

  /// An event has been applied and goes to the log.
  void on_applied(const engine::Record& record);
  void on_committed(log::Sequence last);
  /// The loop has served a request.
  void on_request(Seconds time) { requests_taken_.add(time); }

  void metrics(const Call& call);
  /// The answer to resource.metrics without what the applied events have changed.
  [[nodiscard]] proto::Payload without_states();
  /// Throws Error EAGAIN if the inventory is not known, for a standby whose events may be old, or for a
  /// leader whose log commits nothing, EIO if the store takes too long.
  void ready(const Call& call);

 private:
  void add_nodes(MetricsText& text);
  void add_node_times(MetricsText& text);
  void add_schedulers(MetricsText& text) const;
  void add_requests(MetricsText& text) const;
  void add_streams(MetricsText& text) const;
  [[nodiscard]] std::string encode(bool with_states);
  [[nodiscard]] std::string all_nodes();
  void add_cluster(MetricsText& text) const;
  void add_process(MetricsText& text) const;

  const Executor& executor_;
  Requests& requests_;
  const Stats& stats_;
  const Gate& gate_;
  const JournalTopics& journal_;
  const ClusterTopics& cluster_;
  std::function<SteadyTime()> uptime_;
  std::function<log::Sequence()> last_event_;
  WallTime started_;
  NodeCounts nodes_;
  Histogram requests_taken_;
  Histogram commits_taken_;
  Histogram events_of_commits_;
  /// Events that the log has not committed yet.
  struct Pending {
    log::Sequence sequence;
    SteadyTime since;
  };
  std::deque<Pending> pending_;
  /// The last answers, which are sent again for a while.
  struct Answer {
    proto::Payload payload;
    SteadyTime since{};
  };
  Answer without_nodes_;
  Answer with_nodes_;
  Answer without_states_;
};

}  // namespace resourced::daemon::service

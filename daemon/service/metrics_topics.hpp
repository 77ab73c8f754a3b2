// resource.metrics, the daemon's metrics in the format of Prometheus, and resource.ready. Counts are updated
// with each event, so an answer costs by partitions, states and topics; only an answer with all targets costs
// by their number. Answers are kept for a tenth of a second, and those with all targets for a second.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "core/engine/record.hpp"
#include "core/time.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/service/cluster_topics.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/histogram.hpp"
#include "daemon/service/journal_topics.hpp"
#include "daemon/service/known.hpp"
#include "daemon/service/metrics_text.hpp"
#include "daemon/service/node_counts.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/service/stats.hpp"
#include "daemon/service/topics.hpp"

namespace resourced::daemon::service {

class MetricsTopics {
 public:
  MetricsTopics(const Executor& executor, Requests& requests, const Stats& stats, const Gate& gate,
                const JournalTopics& journal, const ClusterTopics& cluster, const streams::LongestWait& waits,
                const Known& known, const log::EventLog& log);

  /// Called when an event has been applied and goes to the log.
  void on_applied(const engine::Record& record);
  void on_committed(log::Sequence last);
  /// Returns when the oldest event was applied that the log has not committed yet.
  [[nodiscard]] std::optional<SteadyTime> uncommitted_since() const {
    return pending_.empty() ? std::nullopt : std::optional(pending_.front().since);
  }
  /// Counts the time that the loop took to serve a request.
  void on_request(Seconds time) { requests_taken_.add(time); }

  void metrics(const Call& call);
  /// Returns the answer to resource.metrics without metrics that show applied events.
  [[nodiscard]] proto::Payload without_states();
  /// Answers resource.ready. Throws Error EAGAIN if the inventory is not known, for a standby whose events
  /// may be old, or for a leader whose log commits nothing, EIO if the store takes too long.
  void ready(const Call& call);

 private:
  void add_nodes(MetricsText& text);
  void add_node_times(MetricsText& text);
  void add_schedulers(MetricsText& text) const;
  void add_requests(MetricsText& text) const;
  void add_streams(MetricsText& text) const;
  [[nodiscard]] SteadyTime uptime() const { return executor_.now().steady; }
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
  const streams::LongestWait& waits_;
  const Known& known_;
  const log::EventLog& log_;
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
  /// The last answers, which are reused for a while.
  struct Answer {
    proto::Payload payload;
    SteadyTime since{};
  };
  Answer without_nodes_;
  Answer with_nodes_;
  Answer without_states_;
};

}  // namespace resourced::daemon::service

// resource.metrics, the daemon's metrics in the format of Prometheus, and resource.ready. Counts are updated
// with each event, so an answer costs by partitions, states and topics; only an answer with all targets costs
// by their number. Answers are kept for a tenth of a second, and those with all targets for a second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/service/cluster_topics.hpp"
#include "daemon/service/committed.hpp"
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
  MetricsTopics(const Executor& executor, Requests& requests, const Stats& stats, const Gate& gate,
                const JournalTopics& journal, const ClusterTopics& cluster, const streams::LongestWait& waits,
                const Committed& committed, const log::EventLog& log);

  /// Called when an event has just been applied to the committed state.
  void on_committed(const Committed::Event& event) { nodes_.add(event.record); }
  /// Called when the log has committed this number of events, this time after it was given the first of them.
  void on_commit(std::size_t events, Seconds time);
  /// Counts the time that the loop took to serve a request.
  void on_request(Seconds time) { requests_taken_.add(time); }

  void metrics(const Call& call);
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
  const Committed& committed_;
  const log::EventLog& log_;
  WallTime started_;
  NodeCounts nodes_;
  Histogram requests_taken_;
  Histogram commits_taken_;
  Histogram events_of_commits_;
  /// The last answers, which are reused for a while.
  struct Answer {
    proto::Payload payload;
    SteadyTime since{};
  };
  Answer without_nodes_;
  Answer with_nodes_;
};

}  // namespace resourced::daemon::service

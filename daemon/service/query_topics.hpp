// Topics that read the present state, the configuration or the counters, and change only counters.
#pragma once

#include <string>

#include "daemon/log/event_log.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/service/answers.hpp"
#include "daemon/service/committed.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/journal_topics.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/service/stats.hpp"
#include "daemon/service/user_names.hpp"
#include "daemon/streams/longest_wait.hpp"
#include "daemon/streams/outbox.hpp"
#include "daemon/transport/loop_hold.hpp"

namespace resourced::daemon::service {

class QueryTopics {
 public:
  /// Objects whose counters resource.stats-get shows.
  struct Counted {
    const Committed& committed;
    const log::EventLog& log;
    const peers::Clients& clients;
    const streams::Subscribers& subscribers;
    const JournalTopics& journal;
    transport::LoopHolds& holds;
    streams::LongestWait& waits;
  };
  QueryTopics(const Executor& executor, Requests& requests, Answers& answers, Stats& stats,
              const Counted& counted)
      : executor_(executor), requests_(requests), answers_(answers), stats_(stats), counted_(counted) {}

  /// Sets the answer to config.get, a JSON object.
  void set_configuration(std::string configuration);

  void status(const Call& call);
  void inventory(const Call& call);
  void configuration(const Call& call) { requests_.respond(call, configuration_); }
  void ping(const Call& call);
  /// Tells what this daemon is and serves, also clients without a role.
  void version(const Call& call);
  /// Answers attr.get for the broker attribute `hostlist`, from which Flux's command line derives the ranks
  /// of hosts. Other attributes describe a broker, which this daemon is not.
  void attribute(const Call& call);
  void user_names(const Call& call);
  void stats(const Call& call);
  void clear_stats(const Call& call);

 private:
  [[nodiscard]] Stats::Gauges gauges() const;

  const Executor& executor_;
  Requests& requests_;
  Answers& answers_;
  Stats& stats_;
  Counted counted_;
  proto::Payload configuration_;
  UserNames names_;
};

}  // namespace resourced::daemon::service

// The topics that ask for the present state, the configuration or the counters, and change nothing but
// counters.
#pragma once

#include <functional>
#include <string>

#include "daemon/service/answers.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/service/stats.hpp"
#include "daemon/service/user_names.hpp"
#include "daemon/transport/loop_hold.hpp"

namespace resourced::daemon::service {

class QueryTopics {
 public:
  /// `gauges` reads the counters of other parts.
  QueryTopics(const Executor& executor, Requests& requests, Answers& answers, Stats& stats,
              transport::LoopHolds& holds, std::function<Stats::Gauges()> gauges)
      : executor_(executor),
        requests_(requests),
        answers_(answers),
        stats_(stats),
        holds_(holds),
        gauges_(std::move(gauges)) {}

  /// The answer to config.get: a JSON object.
  void set_configuration(std::string configuration);

  void status(const Call& call);
  void inventory(const Call& call);
  void configuration(const Call& call) { requests_.respond(call, configuration_); }
  void ping(const Call& call);
  /// The broker attribute `hostlist`, from which Flux's command line derives the ranks of hosts. Other
  /// attributes describe a broker, which this daemon is not.
  void attribute(const Call& call);
  void user_names(const Call& call);
  void stats(const Call& call);
  void clear_stats(const Call& call);

 private:
  /// Throws Error with this errno and text as long as the inventory of a Flux instance is not known. The
  /// inventory of other daemons is empty then.
  void require_inventory(int errnum, const char* text) const;

  const Executor& executor_;
  Requests& requests_;
  Answers& answers_;
  Stats& stats_;
  transport::LoopHolds& holds_;
  std::function<Stats::Gauges()> gauges_;
  proto::Payload configuration_;
  UserNames names_;
};

}  // namespace resourced::daemon::service

// The job manager of a Flux instance as requests that wait for targets use it: it knows where jobs run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/text/idset.hpp"

namespace resourced::daemon::service {

/// An answer of the job manager about the targets where jobs run.
struct JobAnswer {
  /// The last call of JobManager::follow() for which the answer is new enough.
  std::uint64_t inquiry = 0;
  /// Targets with jobs; unset if the job manager cannot tell.
  std::optional<text::IdSet> allocated;
  /// Why the job manager cannot tell.
  std::string why;
};

/// The job manager. Its answers go to Service::on_jobs(), from the loop.
class JobManager {
 public:
  JobManager() = default;
  virtual ~JobManager() = default;
  JobManager(const JobManager&) = delete;
  JobManager& operator=(const JobManager&) = delete;
  JobManager(JobManager&&) = delete;
  JobManager& operator=(JobManager&&) = delete;

  /// Asks where jobs run, and from then on asks again whenever a job has freed targets for which
  /// Service::awaits_jobs() is true. First it lets the scheduler read the messages sent to it, so that the
  /// scheduler gives no drained target to a job after the inquiry. Returns the number of this call.
  virtual std::uint64_t follow() = 0;
  /// Stops asking again.
  virtual void stop() = 0;
};

}  // namespace resourced::daemon::service

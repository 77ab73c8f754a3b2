// The job manager of a Flux instance, as requests that wait for targets see it: it knows where jobs run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/text/idset.hpp"

namespace resourced::daemon::service {

/// Where jobs run.
struct JobAnswer {
  /// It is new enough for the calls of JobManager::follow() up to this one.
  std::uint64_t inquiry = 0;
  /// Nothing if the job manager cannot tell.
  std::optional<text::IdSet> allocated;
  /// Why it cannot tell.
  std::string why;
};

/// Its answers go to Service::on_jobs(), from the loop.
class JobManager {
 public:
  JobManager() = default;
  virtual ~JobManager() = default;
  JobManager(const JobManager&) = delete;
  JobManager& operator=(const JobManager&) = delete;
  JobManager(JobManager&&) = delete;
  JobManager& operator=(JobManager&&) = delete;

  /// Asks where jobs run, and from here on asks anew whenever a job has freed targets for which
  /// Service::awaits_jobs(). First it lets the scheduler read what it was sent, so that it gives no drained
  /// target to a job after the inquiry. Returns the number of this call.
  virtual std::uint64_t follow() = 0;
  /// Does not ask anew any more.
  virtual void stop() = 0;
};

}  // namespace resourced::daemon::service

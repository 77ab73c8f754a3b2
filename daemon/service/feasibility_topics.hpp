// feasibility.check (RFC 27): a jobspec is checked by a thread, as that can be expensive.
#pragma once

#include "daemon/service/answers.hpp"
#include "daemon/service/feasibility_checks.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/registry.hpp"

namespace resourced::daemon::service {

class FeasibilityTopics {
 public:
  FeasibilityTopics(Requests& requests, Answers& answers, FeasibilityChecks::Post post);

  void check(const Call& call);
  /// The request of a check has ended: drops the check.
  void release(const streams::FeasibilityCheck& dropped) { checks_.drop(dropped.check); }

 private:
  Requests& requests_;
  Answers& answers_;
  FeasibilityChecks checks_;
};

}  // namespace resourced::daemon::service

// feasibility.check (RFC 27). A thread checks the jobspec, as that can be expensive.
#pragma once

#include "daemon/service/answers.hpp"
#include "daemon/service/deferral.hpp"
#include "daemon/service/feasibility_checks.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/registry.hpp"

namespace resourced::daemon::service {

class FeasibilityTopics {
 public:
  FeasibilityTopics(Requests& requests, Answers& answers, Deferral& deferral)
      : requests_(requests), answers_(answers), checks_(requests, deferral) {}

  void check(const Call& call);
  /// Drops the check of a request that has ended.
  void release(const streams::FeasibilityCheck& dropped) { checks_.drop(dropped.check); }

 private:
  Requests& requests_;
  Answers& answers_;
  FeasibilityChecks checks_;
};

}  // namespace resourced::daemon::service

#include "daemon/service/feasibility_topics.hpp"

namespace resourced::daemon::service {

void FeasibilityTopics::check(const Call& call) {
  requests_.keep(call, [&](proto::RequestKey key) {
    const streams::CheckId check =
        checks_.add(key, call.sender.name, call.request, call.topic.bound.values, answers_.acquirable());
    requests_.become(key, streams::FeasibilityCheck{check});
  });
}

}  // namespace resourced::daemon::service

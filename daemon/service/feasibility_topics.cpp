#include "daemon/service/feasibility_topics.hpp"

#include <utility>

namespace resourced::daemon::service {

FeasibilityTopics::FeasibilityTopics(Requests& requests, Answers& answers, FeasibilityChecks::Post post)
    : requests_(requests),
      answers_(answers),
      checks_(std::move(post), [this](proto::RequestKey key, const std::optional<Error>& refusal) {
        if (refusal) {
          requests_.fail(key, *refusal);
        } else {
          requests_.finish(key);
        }
      }) {}

void FeasibilityTopics::check(const Call& call) {
  requests_.keep(call, [&](proto::RequestKey key) {
    const streams::CheckId check =
        checks_.add(key, call.sender.name, call.request, call.topic.bound.values, answers_.acquirable());
    requests_.become(key, streams::FeasibilityCheck{check});
  });
}

}  // namespace resourced::daemon::service

#include "daemon/service/operator_topics.hpp"

#include <nlohmann/json.hpp>

#include "proto/topics/operate.hpp"

namespace resourced::daemon::service {

void OperatorTopics::execute(const Call& call, const Command& command) {
  executor_.step(command);
  requests_.respond(call);
}

void OperatorTopics::drain(const Call& call) { execute(call, proto::parse_drain(call.object())); }

void OperatorTopics::undrain(const Call& call) { execute(call, proto::parse_undrain(call.object())); }

void OperatorTopics::property(const Call& call) { execute(call, proto::parse_property(call.object())); }

void OperatorTopics::expiration(const Call& call) {
  const engine::Engine& engine = executor_.engine();
  const engine::Sequence before = engine.applied();
  execute(call, proto::parse_expiration(call.object()));
  if (engine.applied() != before) expiration_set_ = engine.applied_at();
}

void OperatorTopics::shrink(const Call& call) { execute(call, proto::parse_shrink(call.object())); }

}  // namespace resourced::daemon::service

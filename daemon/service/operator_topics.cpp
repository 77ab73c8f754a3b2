#include "daemon/service/operator_topics.hpp"

#include <nlohmann/json.hpp>

#include "proto/topics/operate.hpp"

namespace resourced::daemon::service {

void OperatorTopics::execute(const Call& call, const engine::Input& input) {
  executor_.step(input);
  requests_.respond(call);
}

void OperatorTopics::drain(const Call& call) { execute(call, proto::topics::parse_drain(call.object())); }

void OperatorTopics::undrain(const Call& call) { execute(call, proto::topics::parse_undrain(call.object())); }

void OperatorTopics::property(const Call& call) {
  execute(call, proto::topics::parse_property(call.object()));
}

void OperatorTopics::expiration(const Call& call) {
  execute(call, engine::SetExpiration{proto::topics::parse_expiration(call.object())});
}

void OperatorTopics::shrink(const Call& call) { execute(call, proto::topics::parse_shrink(call.object())); }

}  // namespace resourced::daemon::service

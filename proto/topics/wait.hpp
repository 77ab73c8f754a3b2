// Payload of resource.wait, this project's own: a request that is answered when a condition holds for all of
// its targets.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/module/waits.hpp"

namespace resourced::proto::topics {

/// The request `{"targets": TARGETS, "for": "idle" | "ready" | "reported", "unreported": ("refuse" | "wait" |
/// "idle")?}`, where TARGETS is an idset or a hostlist. core/module/waits.hpp defines the conditions and
/// `unreported`. The response has no payload.
struct WaitRequest {
  std::string targets;
  module::WaitCondition condition = module::WaitCondition::idle;
  module::Unreported unreported = module::Unreported::refuse;
};
[[nodiscard]] nlohmann::json encode_wait(const WaitRequest& request);
/// Reads the request. Throws Error EPROTO for a key that is missing, has the wrong type, or has another value
/// than these.
[[nodiscard]] WaitRequest parse_wait(const nlohmann::json& payload);

}  // namespace resourced::proto::topics

#include "proto/topics/wait.hpp"

#include <cerrno>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto::topics {

using module::Unreported;
using module::WaitCondition;
using nlohmann::json;

json encode_wait(const WaitRequest& request) {
  json payload{{"targets", request.targets},
               {"for", request.condition == WaitCondition::idle ? "idle" : "ready"}};
  if (request.unreported == Unreported::wait) payload["unreported"] = "wait";
  if (request.unreported == Unreported::assume_idle) payload["unreported"] = "idle";
  return payload;
}

WaitRequest parse_wait(const json& payload) {
  WaitRequest request;
  request.targets = required_string(payload, "targets");
  const std::string& condition = required_string(payload, "for");
  if (condition == "ready") {
    request.condition = WaitCondition::ready;
  } else if (condition != "idle") {
    throw Error(EPROTO, "for must be idle or ready");
  }
  if (!payload.contains("unreported")) return request;
  const std::string& unreported = required_string(payload, "unreported");
  if (unreported == "wait") {
    request.unreported = Unreported::wait;
  } else if (unreported == "idle") {
    request.unreported = Unreported::assume_idle;
  } else if (unreported != "refuse") {
    throw Error(EPROTO, "unreported must be refuse, wait or idle");
  }
  return request;
}

}  // namespace resourced::proto::topics

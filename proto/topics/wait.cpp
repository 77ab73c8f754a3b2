#include "proto/topics/wait.hpp"

#include <cerrno>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto::topics {

using module::Unreported;
using module::WaitCondition;
using nlohmann::json;

namespace {

std::string_view name_of(WaitCondition condition) {
  switch (condition) {
    case WaitCondition::ready:
      return "ready";
    case WaitCondition::reported:
      return "reported";
    case WaitCondition::idle:
      break;
  }
  return "idle";
}

}  // namespace

json encode_wait(const WaitRequest& request) {
  json payload{{"targets", request.targets}, {"for", name_of(request.condition)}};
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
  } else if (condition == "reported") {
    request.condition = WaitCondition::reported;
  } else if (condition != "idle") {
    throw Error(EPROTO, "for must be idle, ready or reported");
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

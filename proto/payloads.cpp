#include "proto/payloads.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::proto {
namespace {

using nlohmann::json;

const std::string& required_string(const json& payload, std::string_view key) {
  const auto found = payload.find(key);
  if (found == payload.end()) throw Error(EPROTO, fmt::format("missing key: {}", key));
  if (!found->is_string()) throw Error(EPROTO, fmt::format("{} must be a string", key));
  return found->get_ref<const std::string&>();
}

std::optional<std::string> optional_string(const json& payload, std::string_view key) {
  const auto found = payload.find(key);
  if (found == payload.end() || found->is_null()) return std::nullopt;
  return required_string(payload, key);
}

std::optional<std::string> parse_reason(const json& payload) {
  auto reason = optional_string(payload, "reason");
  if (reason && reason->empty()) return std::nullopt;
  return reason;
}

DrainMode parse_mode(const json& payload) {
  const auto mode = optional_string(payload, "mode");
  if (!mode) return DrainMode::none;
  if (*mode == "update") return DrainMode::update;
  if (*mode == "overwrite") return DrainMode::overwrite;
  if (*mode == "force-overwrite") return DrainMode::force_overwrite;
  throw Error(EINVAL, fmt::format("unknown mode: {}", *mode));
}

}  // namespace

DrainCommand parse_drain(const json& payload) {
  return {required_string(payload, "targets"), parse_reason(payload), parse_mode(payload)};
}

UndrainCommand parse_undrain(const json& payload) {
  return {required_string(payload, "targets"), parse_reason(payload), parse_mode(payload)};
}

PropertyCommand parse_property(const json& payload) {
  const std::string& op = required_string(payload, "op");
  if (op != "add" && op != "remove") throw Error(EINVAL, fmt::format("unknown op: {}", op));
  return {op == "add" ? PropertyCommand::Op::add : PropertyCommand::Op::remove,
          required_string(payload, "name"), required_string(payload, "targets")};
}

ExpirationCommand parse_expiration(const json& payload) {
  const auto found = payload.find("expiration");
  if (found == payload.end()) throw Error(EPROTO, "missing key: expiration");
  if (!found->is_number()) throw Error(EPROTO, "expiration must be a number");
  return {found->get<double>()};
}

ShrinkCommand parse_shrink(const json& payload) { return {required_string(payload, "targets")}; }

JournalRequest parse_journal(const json& payload) {
  JournalRequest request;
  if (const auto since = payload.find("since"); since != payload.end()) {
    if (!since->is_number()) throw Error(EPROTO, "since must be a number");
    request.since = since->get<double>();
  }
  request.targets = optional_string(payload, "targets");
  return request;
}

std::string parse_partition(const json& payload) {
  if (payload.size() != 1 || !payload.contains("partition")) {
    throw Error(EPROTO, "the payload of resource.acquire may name a partition and nothing else");
  }
  const std::string& name = required_string(payload, "partition");
  if (name.empty()) throw Error(ENOENT, "unknown partition: \"\"");
  return name;
}

}  // namespace resourced::proto

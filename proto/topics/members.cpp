#include "proto/topics/members.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::proto {

using nlohmann::json;

const json& required_member(const json& payload, std::string_view key) {
  const auto found = payload.find(key);
  if (found == payload.end()) throw Error(EPROTO, fmt::format("missing key: {}", key));
  return *found;
}

const std::string& required_string(const json& payload, std::string_view key) {
  const json& value = required_member(payload, key);
  if (!value.is_string()) throw Error(EPROTO, fmt::format("{} must be a string", key));
  return value.get_ref<const std::string&>();
}

std::optional<std::string> optional_string(const json& payload, std::string_view key) {
  const auto found = payload.find(key);
  if (found == payload.end() || found->is_null()) return std::nullopt;
  return required_string(payload, key);
}

}  // namespace resourced::proto

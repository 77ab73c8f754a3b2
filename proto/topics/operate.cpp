#include "proto/topics/operate.hpp"

#include <array>
#include <cerrno>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/drain_json.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto::topics {

using module::DrainMode;
using module::PropertyCommand;

namespace {

using nlohmann::json;

constexpr std::array<std::pair<std::string_view, DrainMode>, 3> modes{{
    {"update", DrainMode::update},
    {"overwrite", DrainMode::overwrite},
    {"force-overwrite", DrainMode::force_overwrite},
}};

/// Returns a member of a request; an empty text means none.
std::optional<std::string> optional_text(const json& payload, const char* key) {
  auto text = optional_string(payload, key);
  if (text && text->empty()) return std::nullopt;
  return text;
}

std::optional<WallTime> optional_time(const json& payload, const char* key) {
  const auto found = payload.find(key);
  if (found == payload.end() || found->is_null()) return std::nullopt;
  const double seconds = required_number(payload, key);
  if (!std::isfinite(seconds) || seconds < 0)
    throw Error(EINVAL, fmt::format("{}: {} is not a time since the epoch", key, seconds));
  return wall_time(seconds);
}

struct Terms {
  [[nodiscard]] std::optional<std::string> text(const char* key) const {
    return optional_string(payload, key);
  }
  [[nodiscard]] std::optional<WallTime> time(const char* key) const { return optional_time(payload, key); }
  const json& payload;
};

bool is_null(const json& payload, const char* key) {
  const auto found = payload.find(key);
  return found != payload.end() && found->is_null();
}

DrainMode parse_mode(const json& payload, std::string_view verb) {
  const auto text = optional_string(payload, "mode");
  if (!text) return DrainMode::none;
  for (const auto& [name, mode] : modes) {
    if (*text == name) return mode;
  }
  throw Error(EINVAL, fmt::format("invalid {} mode '{}' specified", verb, *text));
}

// Encodes the members that drains and undrains have in common.
template <class Change>
json encode_change(const Change& command) {
  json payload{{"targets", command.targets}};
  if (command.reason) payload["reason"] = *command.reason;
  if (command.if_reason) payload["if-reason"] = *command.if_reason;
  for (const auto& [name, mode] : modes) {
    if (command.mode == mode) payload["mode"] = name;
  }
  return payload;
}

}  // namespace

json encode_drain(const module::DrainCommand& command) {
  json payload = encode_change(command);
  if (command.from) payload["from"] = to_number(*command.from);
  for_each_term(command, [&](const char* key, const auto& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, WallTime>) {
      payload[key] = to_number(value);
    } else {
      payload[key] = value;
    }
  });
  if (command.if_not_drained) payload["if-reason"] = nullptr;
  return payload;
}

module::DrainCommand parse_drain(const json& payload) {
  module::DrainTerms terms = read_terms(Terms{payload});
  if (terms.reason && terms.reason->empty()) terms.reason.reset();
  return {std::move(terms),
          required_string(payload, "targets"),
          parse_mode(payload, "drain"),
          optional_time(payload, "from"),
          optional_string(payload, "if-reason"),
          is_null(payload, "if-reason")};
}

json encode_undrain(const module::UndrainCommand& command) {
  json payload = encode_change(command);
  if (command.keeps_scheduled) payload["keeps-scheduled"] = true;
  return payload;
}

module::UndrainCommand parse_undrain(const json& payload) {
  // Refuse null: it means that the target is not drained, and such a target cannot be undrained. The client
  // has lost the reason.
  if (is_null(payload, "if-reason")) throw Error(EPROTO, "if-reason must be a string");
  return {required_string(payload, "targets"), optional_text(payload, "reason"),
          parse_mode(payload, "undrain"), optional_flag(payload, "keeps-scheduled"),
          optional_string(payload, "if-reason")};
}

json encode_drain_cancel(const module::CancelCommand& command) {
  json payload{{"targets", command.targets}};
  if (command.from) payload["from"] = to_number(*command.from);
  return payload;
}

module::CancelCommand parse_drain_cancel(const json& payload) {
  return {required_string(payload, "targets"), optional_time(payload, "from")};
}

json encode_property(const PropertyCommand& command) {
  return {{"op", command.op == PropertyCommand::Op::add ? "add" : "remove"},
          {"name", command.name},
          {"targets", command.targets}};
}

PropertyCommand parse_property(const json& payload) {
  const std::string& op = required_string(payload, "op");
  if (op != "add" && op != "remove") throw Error(EINVAL, fmt::format("unknown op: {}", op));
  return {op == "add" ? PropertyCommand::Op::add : PropertyCommand::Op::remove,
          required_string(payload, "name"), required_string(payload, "targets")};
}

json encode_expiration(const module::ExpirationCommand& command) {
  return {{"expiration", to_number(command.expiration)}};
}

module::ExpirationCommand parse_expiration(const json& payload) {
  return {wall_time(required_number(payload, "expiration"))};
}

json encode_shrink(const module::ShrinkCommand& command) { return {{"targets", command.targets}}; }

module::ShrinkCommand parse_shrink(const json& payload) { return {required_string(payload, "targets")}; }

json encode_unshrink(const module::UnshrinkCommand& command) { return {{"targets", command.targets}}; }

module::UnshrinkCommand parse_unshrink(const json& payload) { return {required_string(payload, "targets")}; }

json encode_forget(const module::ForgetCommand& command) { return {{"hosts", command.hosts}}; }

module::ForgetCommand parse_forget(const json& payload) { return {required_string(payload, "hosts")}; }

json encode_reload(const ReloadRequest& request) {
  json payload = json::object();
  if (request.path) payload["path"] = *request.path;
  if (request.path) payload["force"] = request.force;
  if (request.xml) payload["xml"] = true;
  return payload;
}

ReloadRequest parse_reload(const json& payload) {
  return {optional_string(payload, "path"), optional_flag(payload, "force"), optional_flag(payload, "xml")};
}

}  // namespace resourced::proto::topics

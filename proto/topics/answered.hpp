// Parts that several answers about the state have, in both directions. The errors of the readers are for the
// user of a tool: they name the daemon's answer, since the user did not write the payload.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/module/event.hpp"

namespace resourced::proto::topics {

/// Return a member of an answer. Throw Error EPROTO if it is missing or has another type.
[[nodiscard]] const nlohmann::json& answered(const nlohmann::json& object, const char* key);
[[nodiscard]] const nlohmann::json& answered_object(const nlohmann::json& object, const char* key);
[[nodiscard]] const std::string& answered_text(const nlohmann::json& object, const char* key);

/// Returns the reason of a drain; an empty text for none.
[[nodiscard]] std::string_view reason_text(const module::Drain& drain);
/// Appends the terms of a drain but the reason, and its actor.
void append_cause(std::string& out, const module::Drain& drain);
/// Appends a drain as members of an object: its time under this key, `reason`, the other terms, and `by`.
void append_shown_drain(std::string& out, const char* time_key, const module::Drain& drain);
/// Reads these members. Throws Error EPROTO that names the targets.
[[nodiscard]] module::Drain read_shown_drain(const std::string& targets, const nlohmann::json& entry,
                                             const char* time_key);

}  // namespace resourced::proto::topics

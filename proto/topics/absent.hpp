// The key `absent` of resource.status: what waits for hosts that the inventory lacks.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/module/state.hpp"
#include "proto/topics/status.hpp"

namespace resourced::proto::topics {

/// Appends the key with its object; nothing if nothing waits.
void append_absent(std::string& out, const module::AbsentStates& absent);
/// Reads the object. Throws Error as parse_status() does.
[[nodiscard]] Status::Absent read_absent(const nlohmann::json& object);

}  // namespace resourced::proto::topics

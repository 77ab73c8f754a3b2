// A drain as JSON, in the log: `{"targets": IDSET, "timestamp": T, "reason": STRING?, "by": ACTOR?, "until":
// T?}`.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/module/drain_table.hpp"

namespace resourced::proto {

void append_drain(std::string& out, const module::DrainGroup& drain);
/// Appends the keys besides `targets`, for targets that are named otherwise.
void append_drain_entry(std::string& out, const module::DrainTable::Key& entry);

/// Throws Error EPROTO for a key that is missing or has another type, EINVAL for a bad value.
[[nodiscard]] module::DrainGroup read_drain_group(const nlohmann::json& object);
[[nodiscard]] module::DrainTable::Key read_drain_entry(const nlohmann::json& object);

}  // namespace resourced::proto

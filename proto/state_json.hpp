// A State (core/module/state.hpp) as JSON, for snapshots in the log: all its members by name, targets by rank
// or, where they are absent, by host and ordinal. Sets of resources are documents. What follows from other
// members is not written.
#pragma once

#include <string>
#include <string_view>

#include "core/module/state.hpp"
#include "proto/documents.hpp"

namespace resourced::proto {

[[nodiscard]] std::string encode_state(const module::State& state, Documents& documents);

/// Throws Error EINVAL or EPROTO for any other text, and what `find` throws.
[[nodiscard]] module::State parse_state(std::string_view text, const FindDocument& find);

}  // namespace resourced::proto

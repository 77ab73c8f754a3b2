// Sums of times by state (module::UsageTable) as one line of JSON, for the store: `{"all": GROUP, "hosts":
// {NAME: GROUP}, "properties": {NAME: GROUP}, "missing": TIME}`. GROUP is `[TIMES, [KIND, REASON, TIMES],
// ...]` with an array for each cause, KIND a cause_name(), and TIMES the members of module::Usage in their
// order, in microseconds, one after the other.
#pragma once

#include <string>
#include <string_view>

#include "core/module/usage.hpp"

namespace resourced::proto {

/// Returns the name of a cause: `drain`, `offline`, `torpid`, `other`.
[[nodiscard]] std::string_view cause_name(module::Cause::Kind kind) noexcept;

[[nodiscard]] std::string encode_usage_table(const module::UsageTable& table);

/// Reads a table. Throws Error EINVAL or EPROTO for any other text.
[[nodiscard]] module::UsageTable parse_usage_table(std::string_view text);

}  // namespace resourced::proto

// Names of properties (RFC 20): valid UTF-8 without the characters that RFC 20 forbids.
#pragma once

#include <string>
#include <string_view>

namespace resourced::rset {

/// The reason why the name is invalid, or "" for a valid one.
[[nodiscard]] std::string property_name_defect(std::string_view name);

/// A property that counts in the inventory and is left out of allocations.
[[nodiscard]] inline bool is_local_property(std::string_view name) { return name.starts_with('+'); }

}  // namespace resourced::rset

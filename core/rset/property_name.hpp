// Names of properties (RFC 20): valid UTF-8 without the characters that RFC 20 forbids, and without control
// characters, because readers in C refuse a whole R for a NUL in one of its names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace resourced::rset {

/// Maximum length of a name in bytes; RFC 20 sets no bound.
inline constexpr std::size_t max_property_name = 255;

/// Returns the reason why the name is invalid, or "" for a valid one.
[[nodiscard]] std::string property_name_defect(std::string_view name);

/// Whether this is an instance-local property (`+name`), which is left out of allocations.
[[nodiscard]] inline bool is_local_property(std::string_view name) { return name.starts_with('+'); }

}  // namespace resourced::rset

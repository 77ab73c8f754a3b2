// Suggestions for "did you mean": the known name nearest to an unknown one.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace resourced::text {

/// Number of characters that must be inserted, deleted or replaced to make one name of the other (Levenshtein
/// distance).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the known name with the least distance to `name`, the first of several; nothing if more than a
/// third of the characters differ and the known name does not begin with `name`. Looks at 64 bytes of `name`.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view name,
                                                      std::span<const std::string_view> names);

}  // namespace resourced::text

// The known name that is most like a name that is not known, for errors that ask "did you mean".
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace resourced::text {

/// How many characters must be inserted, deleted or replaced to make one name of the other (Levenshtein).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The first of the names with the least distance; nothing if even that is not alike: more than a third of
/// the characters differ, and it does not begin with `name` either. Looks at 64 bytes of `name`.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view name,
                                                      std::span<const std::string_view> names);

}  // namespace resourced::text

// Text from outside, made fit for one line of an error message: quoted, cut where it is long, with escapes
// for bytes that are not printable ASCII.
#pragma once

#include <string>
#include <string_view>

namespace resourced::text {

/// Maximum number of characters of a text that an error message shows.
inline constexpr std::size_t max_quoted = 60;

/// Returns `"text"`, or `"the first characters..."` for a text that is longer than max_quoted.
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace resourced::text

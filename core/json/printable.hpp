// Text from outside for a terminal or a log. Without this the reason of a drain, or the error text of a
// hostile peer, could move the cursor, add lines to a table, or fill the screen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace resourced {

/// Upper bound of the text that printable_line() returns, in bytes.
inline constexpr std::size_t max_printable_line = 1024;

/// The text as valid UTF-8. Control characters (C0, DEL, C1), line and paragraph separators, and characters
/// that change the direction of text become JSON escapes, `\n` or `\u001b`, so a JSON text on one line keeps
/// its value. Each byte that is not UTF-8 becomes U+FFFD. Other characters are unchanged, also the backslash.
[[nodiscard]] std::string printable(std::string_view text);

/// The same for a text that is one line, such as an error: line ends at its end are removed, others become
/// blanks. A result longer than max_printable_line is cut between two characters and ends in `...`, within
/// that bound.
[[nodiscard]] std::string printable_line(std::string_view text);

}  // namespace resourced

// Text from outside on a terminal or in a log: neither the reason of a drain nor the error text of a hostile
// peer may move the cursor of a reader, add lines to a table, or fill a screen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace resourced {

/// The most bytes of printable_line().
inline constexpr std::size_t max_printable_line = 1024;

/// Valid UTF-8. Control characters (C0, DEL, C1), line and paragraph separators and the characters that turn
/// the direction of text are written as JSON writes them, `\n` or `\u001b`, so a JSON text on one line stays
/// the same value. Each byte that is not UTF-8 becomes U+FFFD. All else stays as it is, the backslash too.
[[nodiscard]] std::string printable(std::string_view text);

/// The same for a text that is a line of its own, such as an error: line ends at its end are left out, others
/// become blanks. What is longer than max_printable_line is cut between two characters, and ends in `...`
/// within that length.
[[nodiscard]] std::string printable_line(std::string_view text);

}  // namespace resourced

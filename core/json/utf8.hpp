// Text from outside: whether it is UTF-8, and how to print it.
//
// UTF-8 (RFC 3629) as far as texts from outside need it: every string that enters a JSON value must be valid,
// because the library that prints JSON throws on anything else, long after the place is known.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace resourced::json_text {

/// The offset of the first byte that is not part of a valid encoding; overlong forms and surrogates are
/// invalid.
[[nodiscard]] std::optional<std::size_t> find_invalid_utf8(std::string_view text);

/// Appends the encoding of a code point. Requires a Unicode scalar value.
void append_utf8(std::string& out, char32_t code_point);

/// The number of characters in valid UTF-8.
[[nodiscard]] std::size_t count_utf8_characters(std::string_view text);

// Text from outside for a terminal or a log. Without this the reason of a drain, or the error text of a
// hostile peer, could move the cursor, add lines to a table, or fill the screen.

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

/// The text with a question mark for each character that printable() escapes and each byte that is not UTF-8,
/// so that the others stay in their columns.
[[nodiscard]] std::string printable_in_place(std::string_view text);

}  // namespace resourced::json_text

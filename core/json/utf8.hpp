// Text from outside: whether it is valid UTF-8, and how to print it.
//
// Every string that enters a JSON value must be valid UTF-8 (RFC 3629), because the library that prints JSON
// throws on anything else, when the place of the string is no longer known.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace resourced::json_text {

/// Returns the offset of the first byte that is not part of a valid encoding; overlong forms and surrogates
/// are invalid.
[[nodiscard]] std::optional<std::size_t> find_invalid_utf8(std::string_view text);

/// Appends the encoding of a code point. Requires a Unicode scalar value.
void append_utf8(std::string& out, char32_t code_point);

/// The number of characters in valid UTF-8.
[[nodiscard]] std::size_t count_utf8_characters(std::string_view text);

// The functions below make text from outside safe for a terminal or a log: the reason of a drain, or the
// error text of a hostile peer, could otherwise move the cursor, add lines to a table, or fill the screen.

/// Upper bound of the text that printable_line() returns, in bytes.
inline constexpr std::size_t max_printable_line = 1024;

/// Returns the text as valid UTF-8. Control characters (C0, DEL, C1), line and paragraph separators, and
/// characters that change the direction of text become JSON escapes, `\n` or `\u001b`, so a JSON text on one
/// line keeps its value. Each byte that is not UTF-8 becomes U+FFFD. Other characters are unchanged, also the
/// backslash.
[[nodiscard]] std::string printable(std::string_view text);

/// Does the same as printable() for a text that should be one line, such as an error: line ends at its end
/// are removed, others become blanks. A result longer than max_printable_line is cut between two characters
/// and ends in `...`, within that bound.
[[nodiscard]] std::string printable_line(std::string_view text);

/// Returns the text with a question mark for each character that printable() escapes and each byte that is
/// not UTF-8, so that the other characters stay in their columns.
[[nodiscard]] std::string printable_in_place(std::string_view text);

}  // namespace resourced::json_text

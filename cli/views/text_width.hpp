// Measures the columns that text takes on a terminal, fits text into some, and converts it for terminals
// without UTF-8. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace resourced::cli::views {

/// Returns the columns that valid UTF-8 takes: East Asian wide characters and emoji take two, combining ones
/// none.
[[nodiscard]] std::size_t width_of(std::string_view text);

/// Returns the beginning of a text that takes at most `columns` of a terminal, with the mark at its end if it
/// was longer. Control characters become escapes.
[[nodiscard]] std::string fit(std::string_view text, std::size_t columns, std::string_view mark = "…");

/// Returns a text that takes at most `columns`, with the mark in the middle if it was longer; a text beyond
/// ASCII as fit() does. Requires text without control characters.
[[nodiscard]] std::string fit_middle(std::string_view text, std::size_t columns);

/// Converts valid UTF-8 to ASCII: `…` becomes `~`, and any other character beyond ASCII its JSON escape, so
/// that a JSON text keeps its value.
[[nodiscard]] std::string to_ascii(std::string_view text);

/// Converts to ASCII within the columns of the text: question marks instead of escapes.
[[nodiscard]] std::string to_ascii_in_place(std::string_view text);

}  // namespace resourced::cli::views

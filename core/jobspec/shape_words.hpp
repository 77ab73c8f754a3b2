// The characters of a shape: what may stand in a word without quotes. Parser and printer must agree on it.
#pragma once

#include <string_view>

namespace resourced {

/// Blanks and control characters: not allowed outside quotes.
[[nodiscard]] constexpr bool is_shape_blank(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte <= ' ' || byte == 0x7F;
}

/// Whether a word may have this character. The parser takes every character that the grammar has no use for.
[[nodiscard]] constexpr bool is_shape_word(char c) {
  constexpr std::string_view special = "[]{};,:=/'\"";
  return !is_shape_blank(c) && special.find(c) == std::string_view::npos;
}

}  // namespace resourced

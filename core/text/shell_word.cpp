#include "core/text/shell_word.hpp"

#include <algorithm>

#include "core/text/digits.hpp"

namespace resourced::text {

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    constexpr std::string_view marks = "_.,:/@%+-";
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           marks.find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + '\'';
}

}  // namespace resourced::text

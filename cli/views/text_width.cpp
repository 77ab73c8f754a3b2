#include "cli/views/text_width.hpp"

#include <algorithm>
#include <clocale>
#include <cwchar>

#include <fmt/format.h>

#include "core/json/utf8.hpp"

namespace resourced::cli::views {

namespace {

struct Character {
  char32_t code_point = 0;
  std::size_t length = 1;
};

constexpr char32_t ascii_end = 0x80;
constexpr char32_t ellipsis = 0x2026;

/// Returns the character at the front of valid UTF-8.
Character first_of(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < ascii_end) return {first, 1};
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  char32_t code_point = first & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length && i < text.size(); ++i)
    code_point = (code_point << 6U) | (static_cast<unsigned char>(text[i]) & 0x3fU);
  return {code_point, std::min(length, text.size())};
}

/// Sets the thread's locale during a measurement, so that widths do not depend on the user's.
class Utf8Locale {
 public:
  Utf8Locale() : before_(::uselocale(locale())) {}
  ~Utf8Locale() { ::uselocale(before_); }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;
  Utf8Locale(Utf8Locale&&) = delete;
  Utf8Locale& operator=(Utf8Locale&&) = delete;

 private:
  static locale_t locale() {
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return utf8;
  }

  locale_t before_;
};

/// Returns the columns of a character. Requires a Utf8Locale.
std::size_t columns_of(char32_t code_point) {
  if (code_point < ascii_end) return 1;
  const int columns = ::wcwidth(static_cast<wchar_t>(code_point));
  // Assume one column for a character that this machine does not know yet.
  return columns < 0 ? 1 : static_cast<std::size_t>(columns);
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < ascii_end; });
}

}  // namespace

std::size_t width_of(std::string_view text) {
  if (is_ascii(text)) return text.size();
  const Utf8Locale locale;
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character character = first_of(text);
    columns += columns_of(character.code_point);
    text.remove_prefix(character.length);
  }
  return columns;
}

std::string fit(std::string_view text, std::size_t columns, std::string_view mark) {
  // Bytes per column that are looked at: every character has at most four bytes, or ten as an escape.
  constexpr std::size_t most_bytes = 16;
  std::string shown = json_text::printable(text.substr(0, std::max<std::size_t>(columns, 1) * most_bytes));
  const std::size_t width_of_mark = width_of(mark);
  const Utf8Locale locale;
  std::size_t used = 0;
  std::size_t kept = 0;
  for (std::size_t at = 0; at < shown.size();) {
    const Character character = first_of(std::string_view(shown).substr(at));
    const std::size_t width = columns_of(character.code_point);
    if (used + width > columns)
      return columns == 0 ? std::string() : shown.substr(0, kept) + std::string(mark);
    used += width;
    at += character.length;
    // Leave room for the mark.
    if (used + width_of_mark <= columns) kept = at;
  }
  return shown;
}

std::string fit_middle(std::string_view text, std::size_t columns) {
  if (columns == 0 || text.size() <= columns || !is_ascii(text)) return fit(text, columns);
  const std::size_t tail = (columns - 1) / 2;
  return fmt::format("{}\u2026{}", text.substr(0, columns - 1 - tail), text.substr(text.size() - tail));
}

std::string to_ascii(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [code_point, length] = first_of(text);
    constexpr char32_t first_of_pairs = 0x10000;
    if (code_point < ascii_end) {
      out += text.front();
    } else if (code_point == ellipsis) {
      out += '~';
    } else if (code_point < first_of_pairs) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(code_point));
    } else {
      const auto rest = static_cast<unsigned>(code_point - first_of_pairs);
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800U + (rest >> 10U), 0xdc00U + (rest & 0x3ffU));
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string to_ascii_in_place(std::string_view text) {
  const Utf8Locale locale;
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [code_point, length] = first_of(text);
    if (code_point < ascii_end) {
      out += text.front();
    } else if (code_point == ellipsis) {
      out += '~';
    } else {
      out.append(columns_of(code_point), '?');
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace resourced::cli::views

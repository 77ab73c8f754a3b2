#include <algorithm>

#include "config/toml_text.hpp"

namespace resourced::config {

namespace {

/// Returns the end of the string that starts at a quote; the end of the text if it is not closed.
std::size_t skip_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool escapes = quote == '"';
  const bool multiline = text.substr(at, 3) == std::string_view(escapes ? R"(""")" : "'''");
  at += multiline ? 3 : 1;
  while (at < text.size()) {
    if (escapes && text[at] == '\\') {
      at += 2;
    } else if (text[at] == quote) {
      if (!multiline) return at + 1;
      // Up to two quotes may stand before the three that close the string.
      const std::size_t end = std::min(text.find_first_not_of(quote, at), text.size());
      if (end - at >= 3) return std::min(end, at + 5);
      at = end;
    } else if (text[at] == '\n' && !multiline) {
      return at;
    } else {
      ++at;
    }
  }
  return text.size();
}

TextPosition position_of(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0, the start of the first line
  return {static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n') + 1),
          static_cast<std::uint32_t>(at - line_start + 1)};
}

}  // namespace

std::optional<TextPosition> find_deep_key(std::string_view text, std::size_t limit) {
  std::size_t dots = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    switch (text[at]) {
      case '"':
      case '\'':
        at = skip_string(text, at);
        continue;
      case '#':
        at = std::min(text.find('\n', at), text.size());
        continue;
      case '.':
        if (++dots > limit) return position_of(text, at);
        break;
      case '\n':
      case '=':
      case ',':
      case '{':
        dots = 0;
        break;
      default:
        break;
    }
    ++at;
  }
  return std::nullopt;
}

}  // namespace resourced::config

#include "core/json/utf8.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

namespace resourced::json_text {
namespace {

struct Lead {
  std::size_t length;
  unsigned char second_min;
  unsigned char second_max;
};

// Classifies a lead byte by the table of well-formed sequences: only the second byte has limits of its own.
std::optional<Lead> classify(unsigned char byte) {
  if (byte < 0x80) return Lead{1, 0, 0};
  if (byte < 0xC2) return std::nullopt;
  if (byte < 0xE0) return Lead{2, 0x80, 0xBF};
  if (byte == 0xE0) return Lead{3, 0xA0, 0xBF};
  if (byte == 0xED) return Lead{3, 0x80, 0x9F};
  if (byte < 0xF0) return Lead{3, 0x80, 0xBF};
  if (byte == 0xF0) return Lead{4, 0x90, 0xBF};
  if (byte < 0xF4) return Lead{4, 0x80, 0xBF};
  if (byte == 0xF4) return Lead{4, 0x80, 0x8F};
  return std::nullopt;
}

bool is_continuation(unsigned char byte) { return (byte & 0xC0U) == 0x80U; }

// Skips ASCII, of which nearly all text consists, eight bytes at a time.
std::size_t skip_ascii_words(std::string_view text, std::size_t at) {
  std::uint64_t word = 0;
  while (text.size() - at >= sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & 0x8080808080808080U) != 0) break;
    at += sizeof word;
  }
  return at;
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    at = skip_ascii_words(text, at);
    if (at == text.size()) break;
    const auto lead = classify(static_cast<unsigned char>(text[at]));
    if (!lead || text.size() - at < lead->length) return at;
    for (std::size_t i = 1; i < lead->length; ++i) {
      const auto byte = static_cast<unsigned char>(text[at + i]);
      if (!is_continuation(byte)) return at;
      if (i == 1 && (byte < lead->second_min || byte > lead->second_max)) return at;
    }
    at += lead->length;
  }
  return std::nullopt;
}

void append_utf8(std::string& out, char32_t code_point) {
  assert(code_point <= 0x10FFFF);
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((static_cast<unsigned>(code_point) >> shift) & 0x3FU));
  };
  const auto lead = [&](unsigned mark, unsigned shift) {
    out += static_cast<char>(mark | (static_cast<unsigned>(code_point) >> shift));
  };
  if (code_point < 0x80) {
    lead(0, 0);
  } else if (code_point < 0x800) {
    lead(0xC0, 6);
    tail(0);
  } else if (code_point < 0x10000) {
    lead(0xE0, 12);
    tail(6);
    tail(0);
  } else {
    lead(0xF0, 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

std::size_t count_utf8_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return !is_continuation(static_cast<unsigned char>(c)); }));
}

namespace {

constexpr std::string_view replacement = "\uFFFD";
constexpr std::string_view ellipsis = "...";

void append_escape(std::string& out, char32_t code) {
  switch (code) {
    case U'\b':
      out += "\\b";
      break;
    case U'\t':
      out += "\\t";
      break;
    case U'\n':
      out += "\\n";
      break;
    case U'\f':
      out += "\\f";
      break;
    case U'\r':
      out += "\\r";
      break;
    default:
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(code));
  }
}

bool is_escaped(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
  return code < 0x20 || within(0x7F, 0x9F) || code == 0x61C || within(0x200E, 0x200F) ||
         within(0x2028, 0x202E) || within(0x2066, 0x2069);
}

/// Returns the first character of valid UTF-8 that is not empty.
std::string_view first_character(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) ++size;
  return text.substr(0, size);
}

char32_t code_of(std::string_view character) {
  // The lead byte of a character of n bytes begins with n ones and a zero; the rest of it belongs to the
  // code.
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead;
  char32_t code = lead & (0xFFU >> (character.size() + 1));
  for (const char c : character.substr(1)) code = (code << 6U) | (static_cast<unsigned char>(c) & 0x3FU);
  return code;
}

/// Calls f with each character of valid UTF-8, and with the replacement character for each byte that is not
/// UTF-8, until f returns false. Reads the text once.
template <class F>
void for_each_character(std::string_view text, F f) {
  while (!text.empty()) {
    std::string_view valid = text.substr(0, find_invalid_utf8(text).value_or(text.size()));
    text.remove_prefix(valid.size());
    while (!valid.empty()) {
      const std::string_view character = first_character(valid);
      if (!f(character)) return;
      valid.remove_prefix(character.size());
    }
    if (text.empty()) return;
    if (!f(replacement)) return;
    text.remove_prefix(1);
  }
}

void append_printable(std::string& out, std::string_view character) {
  const char32_t code = code_of(character);
  if (is_escaped(code)) {
    append_escape(out, code);
  } else {
    out += character;
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_character(text, [&out](std::string_view character) {
    append_printable(out, character);
    return true;
  });
  return out;
}

std::string printable_in_place(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_character(text, [&out](std::string_view character) {
    const bool is_shown = character.data() != replacement.data() && !is_escaped(code_of(character));
    out += is_shown ? character : "?";
    return true;
  });
  return out;
}

std::string printable_line(std::string_view text) {
  const auto is_line_end = [](char c) { return c == '\n' || c == '\r'; };
  while (!text.empty() && is_line_end(text.back())) text.remove_suffix(1);
  std::string out;
  // Find the longest prefix that leaves room for the ellipsis.
  std::size_t end = 0;
  for_each_character(text, [&](std::string_view character) {
    if (out.size() + ellipsis.size() <= max_printable_line) end = out.size();
    append_printable(out, is_line_end(character[0]) ? " " : character);
    return out.size() <= max_printable_line;
  });
  if (out.size() > max_printable_line) out.replace(end, std::string::npos, ellipsis);
  return out;
}

}  // namespace resourced::json_text

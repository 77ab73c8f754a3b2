#include "core/json/utf8.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>

namespace resourced {

namespace {

struct Lead {
  std::size_t length;
  unsigned char second_min;
  unsigned char second_max;
};

// The table of well-formed sequences: only the second byte has limits of its own.
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

// Nearly all text is ASCII: eight bytes at a time.
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

}  // namespace resourced

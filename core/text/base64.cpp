#include "core/text/base64.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace resourced::text {
namespace {

constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The value of each letter; 64 for other bytes.
constexpr std::array<std::uint8_t, 256> values = [] {
  std::array<std::uint8_t, 256> all{};
  all.fill(64);
  for (std::size_t i = 0; i < letters.size(); ++i)
    all.at(static_cast<unsigned char>(letters[i])) = static_cast<std::uint8_t>(i);
  return all;
}();

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  char* out = text.data();
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) {
      return k < bytes.size() ? std::uint32_t{static_cast<unsigned char>(bytes[k])} : 0;
    };
    const std::uint32_t three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    *out++ = letters[three >> 18];
    *out++ = letters[three >> 12 & 63];
    if (i + 1 < bytes.size()) *out++ = letters[three >> 6 & 63];
    if (i + 2 < bytes.size()) *out++ = letters[three & 63];
  }
  return text;
}

std::optional<std::string> decode_base64(std::string_view text) {
  // Four letters are three bytes, with `=` at the end for each byte that is missing.
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t missing = 0;
  while (missing < 2 && missing < text.size() && text[text.size() - 1 - missing] == '=') ++missing;
  const std::size_t end = text.size() - missing;
  std::string bytes(text.size() / 4 * 3, '\0');
  char* out = bytes.data();
  std::uint32_t all = 0;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t three = 0;
    for (std::size_t k = i; k < i + 4; ++k) {
      const std::uint8_t value = k < end ? values[static_cast<unsigned char>(text[k])] : 0;
      all |= value;
      three = three << 6 | value;
    }
    *out++ = static_cast<char>(three >> 16);
    *out++ = static_cast<char>(three >> 8);
    *out++ = static_cast<char>(three);
  }
  if (all >= 64) return std::nullopt;
  // Bits beyond the last byte must be 0.
  for (; missing > 0; --missing) {
    if (bytes.back() != '\0') return std::nullopt;
    bytes.pop_back();
  }
  return bytes;
}

}  // namespace resourced::text

// The tokens of JSON (RFC 8259): strings with their escapes, and numbers. Shared by the reader of JSON and by
// shapes, whose values are JSON with a few liberties (RFC 46).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace resourced::json_text {

/// Result of a scan: the offset after the text that was read, or of the bad byte, with the reason.
struct JsonScan {
  std::size_t end = 0;
  const char* problem = nullptr;
};

/// Returns the end of the part of a string that needs no decoding: the offset of a quote, a backslash or a
/// control character, or the end of the text.
[[nodiscard]] inline std::size_t json_verbatim_end(std::string_view text, std::size_t at, char quote) {
  // Compare eight bytes at a time: each comparison sets the highest bit of the bytes that match. Borrows can
  // set further bits above a match, so only the lowest one counts.
  constexpr std::uint64_t ones = 0x0101010101010101U;
  constexpr std::uint64_t marks = 0x8080808080808080U;
  const auto below = [](std::uint64_t bytes, std::uint64_t limit) {
    return (bytes - ones * limit) & ~bytes & marks;
  };
  std::uint64_t bytes = 0;
  while (std::endian::native == std::endian::little && text.size() - at >= sizeof bytes) {
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    const std::uint64_t stops = below(bytes, ' ') |
                                below(bytes ^ ones * static_cast<unsigned char>(quote), 1) |
                                below(bytes ^ ones * '\\', 1);
    if (stops != 0) return at + static_cast<std::size_t>(std::countr_zero(stops)) / 8;
    at += sizeof bytes;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) >= ' ' && text[at] != quote &&
         text[at] != '\\')
    ++at;
  return at;
}

/// Reads a string whose opening quote, which is the closing one too, stands before `at`. Escapes are those of
/// JSON, and the quote. The text must be valid UTF-8, and then so is `out`.
[[nodiscard]] JsonScan scan_json_string(std::string_view text, std::size_t at, char quote, std::string& out);

/// A number of JSON. Integers stay integers, negative ones are signed.
using JsonNumber = std::variant<std::int64_t, std::uint64_t, double>;

/// Returns the length of the number at the start of the text, 0 if none starts there.
[[nodiscard]] std::size_t json_number_length(std::string_view text);
/// Returns the value of a number that json_number_length() found; nothing if it is an integer beyond 64 bits
/// or not finite.
[[nodiscard]] std::optional<JsonNumber> read_json_number(std::string_view number);
/// Returns the nearest floating point number; nothing if the number is too large for a double.
[[nodiscard]] std::optional<double> nearest_json_number(std::string_view number);

}  // namespace resourced::json_text

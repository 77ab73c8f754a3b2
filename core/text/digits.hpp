// Fast reading and writing of decimal numbers: idsets and hostlists of a large cluster have hundreds of
// thousands of short ones. Private to core/text.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace resourced::text {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Digits {
  std::uint64_t value = 0;
  /// Number of digits at the beginning of the text.
  std::size_t size = 0;
  bool overflow = false;
};

[[nodiscard]] Digits read_many_digits(std::string_view text);

/// The number at the beginning of a text; the value is undefined where it does not fit in 64 bits.
/// The loop is unrolled for branch prediction: in a long list most numbers have as many digits as the one
/// before.
[[gnu::always_inline]] inline Digits read_digits(std::string_view text) {
  constexpr std::size_t few = 10;
  if (text.size() < few) return read_many_digits(text);
  std::uint64_t value = 0;
#pragma GCC unroll 10
  for (std::size_t i = 0; i < few; ++i) {
    const auto digit = static_cast<unsigned char>(text[i] - '0');
    if (digit > 9) return {.value = value, .size = i};
    value = value * 10 + digit;
  }
  return read_many_digits(text);
}

/// Writes 32-bit numbers that come in roughly ascending order: the digits above the last four are kept from
/// one number to the next.
class DigitWriter {
 public:
  /// Upper bound of the characters that write() may overwrite, also beyond the end that it returns.
  static constexpr std::size_t room = 16;

  /// Writes a number and returns the end of it. Requires room characters at out.
  [[gnu::always_inline]] char* write(char* out, std::uint32_t number) {
    const std::uint32_t high = number / 10000;
    const std::uint32_t low = number % 10000;
    if (high == 0) return std::to_chars(out, out + room, low).ptr;
    if (high != high_) {
      high_ = high;
      high_size_ = static_cast<std::size_t>(
          std::to_chars(text_.data(), text_.data() + text_.size(), high).ptr - text_.data());
    }
    std::memcpy(out, text_.data(), text_.size());
    out += high_size_;
    std::memcpy(out, pairs.data() + std::size_t{low / 100} * 2, 2);
    std::memcpy(out + 2, pairs.data() + std::size_t{low % 100} * 2, 2);
    return out + 4;
  }

 private:
  static constexpr std::array<char, 200> pairs = [] {
    std::array<char, 200> table{};
    for (std::size_t i = 0; i < 100; ++i) {
      table[2 * i] = static_cast<char>('0' + i / 10);
      table[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
    return table;
  }();

  std::uint32_t high_ = 0;
  std::size_t high_size_ = 0;
  std::array<char, 8> text_{};
};

}  // namespace resourced::text

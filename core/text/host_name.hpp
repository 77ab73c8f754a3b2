// Host names (RFC 29): a number between a prefix and a suffix, and the order that people expect of names with
// numbers in them. Private to core/text.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace resourced::text {

/// The most characters of a host name.
inline constexpr std::size_t max_host_name = 1024;

/// The most digits of a number in a name; more digits before them count as text.
inline constexpr std::size_t max_number_digits = 18;

/// A number as it is written. The width is the number of digits if there are leading zeros, else 1: this is
/// the least width that writes it, and the same for equal texts.
struct HostNumber {
  std::uint64_t value = 0;
  std::uint32_t width = 1;
  friend bool operator==(const HostNumber&, const HostNumber&) = default;
};

/// Whether a host name may have this character: printable ASCII except blanks, brackets and commas.
[[nodiscard]] inline bool is_host_char(char c) noexcept {
  static constexpr std::array<bool, 256> table = [] {
    std::array<bool, 256> allowed{};
    for (char x = '!'; x <= '~'; ++x)
      allowed[static_cast<unsigned char>(x)] = x != '[' && x != ']' && x != ',';
    return allowed;
  }();
  return table[static_cast<unsigned char>(c)];
}

/// Whether a text consists of the characters of a host name, one or more.
[[nodiscard]] bool is_host_name(std::string_view name) noexcept;

struct HostNameParts {
  std::string_view prefix;
  std::string_view digits;
  std::string_view suffix;
};

/// The parts around the last number in a name. Without a number all is prefix.
[[nodiscard]] HostNameParts split_host_name(std::string_view name) noexcept;

/// The prefix and the suffix of two names that differ in one number only, and the digits of that number: in
/// a, and in b.
struct HostNameDifference {
  HostNameParts a;
  std::string_view digits_of_b;
};
[[nodiscard]] std::optional<HostNameDifference> single_difference(std::string_view a,
                                                                  std::string_view b) noexcept;

/// The number that makes a name of a prefix and a suffix, if there is one.
[[nodiscard]] std::optional<HostNumber> number_between(std::string_view name, std::string_view prefix,
                                                       std::string_view suffix) noexcept;

/// Reads the digits of a number. Requires 1 to max_number_digits digits.
[[nodiscard]] HostNumber read_host_number(std::string_view digits) noexcept;

/// Number of digits of a number without leading zeros.
[[nodiscard]] std::size_t digit_count(std::uint64_t number) noexcept;

/// The least width that writes a number as this width does.
[[nodiscard]] std::uint32_t least_width(std::uint64_t number, std::uint32_t width) noexcept;

/// The smallest number with this number of digits. Requires 1 to max_number_digits + 1 digits.
[[nodiscard]] std::uint64_t smallest_with_digits(std::size_t digits) noexcept;

void write_host_number(std::string& out, std::uint64_t number, std::uint32_t width);

/// Orders host names by the text before the first number, then by that number, then by its leading zeros, and
/// so on.
[[nodiscard]] std::strong_ordering compare_host_names(std::string_view a, std::string_view b) noexcept;

}  // namespace resourced::text

#include "core/text/host_name.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/text/digits.hpp"

namespace resourced::text {

namespace {

constexpr std::array<std::uint64_t, max_number_digits + 2> powers_of_ten = [] {
  std::array<std::uint64_t, max_number_digits + 2> powers{1};
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}();

std::size_t leading_digits(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
}

}  // namespace

bool is_host_name(std::string_view name) noexcept {
  return !name.empty() && std::all_of(name.begin(), name.end(), is_host_char);
}

HostNameParts split_host_name(std::string_view name) noexcept {
  std::size_t end = name.size();
  while (end > 0 && !is_digit(name[end - 1])) --end;
  if (end == 0) return {.prefix = name, .digits = {}, .suffix = {}};
  std::size_t begin = end - 1;
  const std::size_t least = end - std::min(end, max_number_digits);
  while (begin > least && is_digit(name[begin - 1])) --begin;
  return {
      .prefix = name.substr(0, begin), .digits = name.substr(begin, end - begin), .suffix = name.substr(end)};
}

std::optional<HostNameDifference> single_difference(std::string_view a, std::string_view b) noexcept {
  auto begin =
      static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  while (begin > 0 && is_digit(a[begin - 1])) --begin;
  const std::size_t digits_a = leading_digits(a.substr(begin));
  const std::size_t digits_b = leading_digits(b.substr(begin));
  if (digits_a == 0 || digits_b == 0 || std::max(digits_a, digits_b) > max_number_digits) return std::nullopt;
  const std::string_view suffix = a.substr(begin + digits_a);
  if (suffix != b.substr(begin + digits_b)) return std::nullopt;
  return HostNameDifference{
      .a = {.prefix = a.substr(0, begin), .digits = a.substr(begin, digits_a), .suffix = suffix},
      .digits_of_b = b.substr(begin, digits_b)};
}

std::optional<HostNumber> number_between(std::string_view name, std::string_view prefix,
                                         std::string_view suffix) noexcept {
  const std::size_t around = prefix.size() + suffix.size();
  if (name.size() <= around || name.size() - around > max_number_digits) return std::nullopt;
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  const std::string_view digits = name.substr(prefix.size(), name.size() - around);
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  const bool padded = digits.size() > 1 && digits.front() == '0';
  return HostNumber{.value = value, .width = padded ? static_cast<std::uint32_t>(digits.size()) : 1};
}

HostNumber read_host_number(std::string_view digits) noexcept {
  std::uint64_t value = 0;
  for (const char c : digits) value = value * 10 + static_cast<std::uint64_t>(c - '0');
  const bool padded = digits.size() > 1 && digits.front() == '0';
  return {.value = value, .width = padded ? static_cast<std::uint32_t>(digits.size()) : 1};
}

std::size_t digit_count(std::uint64_t number) noexcept {
  std::size_t digits = 1;
  while (digits < powers_of_ten.size() && number >= powers_of_ten[digits]) ++digits;
  return digits;
}

std::uint32_t least_width(std::uint64_t number, std::uint32_t width) noexcept {
  return width > 1 && number < powers_of_ten[width - 1] ? width : 1;
}

std::uint64_t smallest_with_digits(std::size_t digits) noexcept {
  return digits <= 1 ? 0 : powers_of_ten[digits - 1];
}

void write_host_number(std::string& out, std::uint64_t number, std::uint32_t width) {
  std::array<char, 20> digits{};
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  const auto size = static_cast<std::size_t>(end - digits.data());
  if (size < width) out.append(width - size, '0');
  out.append(digits.data(), size);
}

std::strong_ordering compare_host_names(std::string_view a, std::string_view b) noexcept {
  while (true) {
    const std::size_t shorter = std::min(a.size(), b.size());
    std::size_t same = 0;
    while (same < shorter && a[same] == b[same] && !is_digit(a[same])) ++same;
    a.remove_prefix(same);
    b.remove_prefix(same);
    const std::size_t digits_a = leading_digits(a);
    const std::size_t digits_b = leading_digits(b);
    if (digits_a == 0 || digits_b == 0) {
      // The end of a name comes before a number, and a number before other text.
      const auto rank = [](std::string_view rest) { return rest.empty() ? 0 : is_digit(rest[0]) ? 1 : 2; };
      if (const auto order = rank(a) <=> rank(b); std::is_neq(order) || a.empty()) return order;
      return a[0] <=> b[0];
    }
    const auto number = [](std::string_view rest, std::size_t digits) {
      const std::size_t zeros = std::min(rest.find_first_not_of('0'), digits);
      return rest.substr(zeros, digits - zeros);
    };
    const std::string_view number_a = number(a, digits_a);
    const std::string_view number_b = number(b, digits_b);
    if (const auto order = number_a.size() <=> number_b.size(); std::is_neq(order)) return order;
    if (const auto order = number_a <=> number_b; std::is_neq(order)) return order;
    if (digits_a != digits_b) return digits_a <=> digits_b;
    a.remove_prefix(digits_a);
    b.remove_prefix(digits_b);
  }
}

}  // namespace resourced::text

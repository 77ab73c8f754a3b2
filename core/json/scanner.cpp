#include "core/json/scanner.hpp"

#include <algorithm>
#include <charconv>

#include "core/json/utf8.hpp"

namespace resourced::json_text {

namespace {

// Reads the four digits of \uXXXX.
std::optional<char32_t> read_hex4(std::string_view text, std::size_t at) {
  if (text.size() < at + 4) return std::nullopt;
  std::uint32_t value = 0;
  const char* last = text.data() + at + 4;
  const auto [end, code] = std::from_chars(text.data() + at, last, value, 16);
  if (code != std::errc{} || end != last) return std::nullopt;
  return value;
}

bool is_high_surrogate(char32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low_surrogate(char32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

// Reads \uXXXX, or two of them for a character beyond the first plane; `at` is behind the first u.
JsonScan scan_unicode_escape(std::string_view text, std::size_t at, std::string& out) {
  auto unit = read_hex4(text, at);
  if (!unit) return {at, "\\u needs four hexadecimal digits"};
  if (is_low_surrogate(*unit)) return {at, "this \\u escape is half of a pair"};
  at += 4;
  if (is_high_surrogate(*unit)) {
    const auto low = text.substr(at).starts_with("\\u") ? read_hex4(text, at + 2) : std::nullopt;
    if (!low || !is_low_surrogate(*low)) return {at, "this \\u escape is half of a pair"};
    unit = 0x10000 + ((*unit - 0xD800) << 10U) + (*low - 0xDC00);
    at += 6;
  }
  append_utf8(out, *unit);
  return {at, nullptr};
}

// Reads an escape; `at` is behind the backslash.
JsonScan scan_escape(std::string_view text, std::size_t at, char quote, std::string& out) {
  if (at == text.size()) return {at, "the string has no end"};
  constexpr std::string_view names = "\"\\/bfnrt";
  constexpr std::string_view values = "\"\\/\b\f\n\r\t";
  const char c = text[at];
  if (c == 'u') return scan_unicode_escape(text, at + 1, out);
  if (c == quote) {
    out += quote;
  } else if (const std::size_t index = names.find(c); index != std::string_view::npos) {
    out += values[index];
  } else {
    return {at, "there is no such escape"};
  }
  return {at + 1, nullptr};
}

std::size_t digits_end(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  return at;
}

template <class T>
std::optional<JsonNumber> read_as(std::string_view number) {
  T value{};
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (code != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  return value;
}

/// Whether a number that no double can hold is too close to 0 instead of too large. Requires a digit other
/// than 0.
bool is_below_range(std::string_view number) {
  const std::size_t end = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, end);
  // An exponent that does not fit into 32 bits is larger than both positions, so its sign decides.
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first = static_cast<std::int64_t>(digits.find_first_of("123456789"));
  std::string_view exponent = number.substr(std::min(end + 1, number.size()));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int32_t power = 0;
  const auto read = std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
  if (read.ec == std::errc::result_out_of_range) return exponent.starts_with('-');
  return point - first + power < 0;
}

}  // namespace

JsonScan scan_json_string(std::string_view text, std::size_t at, char quote, std::string& out) {
  for (;;) {
    const std::size_t end = json_verbatim_end(text, at, quote);
    out.append(text, at, end - at);
    if (end == text.size()) return {end, "the string has no end"};
    const char c = text[end];
    if (c == quote) return {end + 1, nullptr};
    if (c != '\\') return {end, "a control character in a string must be written as an escape"};
    const JsonScan escape = scan_escape(text, end + 1, quote, out);
    if (escape.problem != nullptr) return escape;
    at = escape.end;
  }
}

std::size_t json_number_length(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const std::size_t integer = at;
  at = digits_end(text, at);
  if (at == integer || (text[integer] == '0' && at > integer + 1)) return 0;
  if (at < text.size() && text[at] == '.') {
    const std::size_t end = digits_end(text, at + 1);
    if (end == at + 1) return 0;
    at = end;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t digits = at + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    const std::size_t end = digits_end(text, digits);
    if (end == digits) return 0;
    at = end;
  }
  return at;
}

std::optional<JsonNumber> read_json_number(std::string_view number) {
  // An R has 0.0 for a time that is not set.
  if (number == "0.0") return 0.0;
  const bool negative = number.starts_with('-');
  if (digits_end(number, negative ? 1 : 0) != number.size()) return read_as<double>(number);
  if (negative) return read_as<std::int64_t>(number);
  return read_as<std::uint64_t>(number);
}

std::optional<double> nearest_json_number(std::string_view number) {
  if (const auto value = read_as<double>(number)) return std::get<double>(*value);
  if (!is_below_range(number)) return std::nullopt;
  return number.starts_with('-') ? -0.0 : 0.0;
}

}  // namespace resourced::json_text

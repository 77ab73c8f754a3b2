#include "core/text/duration.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <optional>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/quote.hpp"

namespace resourced::text {

namespace {

struct Unit {
  std::string_view name;
  std::string_view word;
  double factor;
  double divisor;
  /// Whether RFC 23 lacks the unit.
  bool is_further = false;
};

// The factor of milliseconds is a divisor, because 1/1000 is not a double and would round twice.
constexpr std::array<Unit, 7> known_units{{
    {"w", "week", 604800, 1, true},
    {"d", "day", 86400, 1},
    {"h", "hour", 3600, 1},
    {"m", "minute", 60, 1},
    {"s", "second", 1, 1},
    {"ms", "millisecond", 1, 1000},
    {"", "", 1, 1},
}};

bool has_unit(DurationUnits units, const Unit& unit) {
  return !unit.is_further || units == DurationUnits::with_weeks;
}

double in_seconds(double number, const Unit& unit) { return number * unit.factor / unit.divisor; }

bool equal_in_any_case(std::string_view text, std::string_view lower_case) {
  return std::equal(text.begin(), text.end(), lower_case.begin(), lower_case.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_decimal(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// Whether the text starts with a number: a digit, perhaps with a point before it.
bool starts_with_digit(std::string_view text, bool (*is_digit)(char)) {
  if (text.starts_with('.')) text.remove_prefix(1);
  return !text.empty() && is_digit(text.front());
}

[[noreturn]] void fail(int errnum, std::string_view text, std::string_view reason) {
  throw Error(errnum, fmt::format("{} is not a duration: {}", quoted(text), reason));
}

}  // namespace

std::string list_of_units(DurationUnits units) {
  std::string list;
  // The list begins with the smallest unit.
  std::for_each(known_units.rbegin(), known_units.rend(), [&](const Unit& unit) {
    if (!unit.name.empty() && has_unit(units, unit))
      list += fmt::format("{}{}", list.empty() ? "" : ", ", unit.name);
  });
  return list;
}

std::optional<double> seconds_of_unit(std::string_view unit) {
  for (const Unit& known : known_units) {
    const bool is_plural = unit.starts_with(known.word) && unit.substr(known.word.size()) == "s";
    if (known.name.empty() || (unit != known.name && unit != known.word && !is_plural)) continue;
    return in_seconds(1, known);
  }
  return std::nullopt;
}

Seconds parse_duration(std::string_view text, DurationUnits units) {
  std::string_view rest = text;
  if (rest.starts_with('-')) fail(EINVAL, text, "it is negative");
  if (rest.starts_with('+')) rest.remove_prefix(1);
  if (equal_in_any_case(rest, "inf") || equal_in_any_case(rest, "infinity")) return forever;

  // Without a hexadecimal digit after it, strtod() reads the 0 of 0x alone.
  const bool is_hexadecimal =
      equal_in_any_case(rest.substr(0, 2), "0x") && starts_with_digit(rest.substr(2), is_hex);
  if (is_hexadecimal) rest.remove_prefix(2);
  // Refuses forms that from_chars accepts beyond numbers: inf, nan, a second sign.
  if (!is_hexadecimal && !starts_with_digit(rest, is_decimal))
    fail(EINVAL, text, "it does not start with a number");
  double number = 0;
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), number,
                      is_hexadecimal ? std::chars_format::hex : std::chars_format::general);
  if (error == std::errc::result_out_of_range) fail(ERANGE, text, "the number is out of range");
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));

  const auto unit = std::find_if(known_units.begin(), known_units.end(),
                                 [&](const Unit& u) { return u.name == rest && has_unit(units, u); });
  if (unit == known_units.end())
    fail(EINVAL, text, fmt::format("{} is not a unit ({})", quoted(rest), list_of_units(units)));
  const double seconds = in_seconds(number, *unit);
  if (std::isinf(seconds)) fail(ERANGE, text, "the number is out of range");
  return Seconds(seconds);
}

std::string format_duration(Seconds duration) {
  const double seconds = duration.count();
  if (std::isnan(seconds) || seconds < 0)
    throw Error(EINVAL, fmt::format("{} seconds is not a duration", seconds));
  if (std::isinf(seconds)) return "inf";
  if (seconds == 0) return "0s";
  std::string shortest = fmt::format("{}s", seconds);
  for (const Unit& unit : known_units) {
    const double number = seconds * unit.divisor / unit.factor;
    if (unit.name.empty() || unit.is_further || std::isinf(number) || in_seconds(number, unit) != seconds)
      continue;
    std::string text = fmt::format("{}{}", number, unit.name);
    const bool larger_unit = text.size() == shortest.size() && number >= 1 && unit.factor > 1;
    if (text.size() < shortest.size() || larger_unit) shortest = std::move(text);
  }
  return shortest;
}

std::string format_utc(WallTime time) {
  constexpr double most = 1e15;
  const double second = std::floor(to_number(time));
  if (!(std::abs(second) < most)) return fmt::format("{}", to_number(time));
  const auto seconds = static_cast<std::time_t>(second);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc);
}

}  // namespace resourced::text

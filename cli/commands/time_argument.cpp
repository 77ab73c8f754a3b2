#include "cli/commands/time_argument.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/views/listing.hpp"
#include "core/error.hpp"
#include "core/text/duration.hpp"
#include "core/text/whole_number.hpp"

namespace resourced::cli::commands {

using views::UsageError;

namespace {

[[noreturn]] void refuse(std::string_view text) {
  throw UsageError(fmt::format(
      "bad time \"{}\": expected seconds since the epoch, a date such as 2026-11-22T18:30, a time "
      "such as 18:30, or a duration such as 2h, +1h30m or now+2h with the units {}",
      text, text::list_of_units(text::DurationUnits::with_weeks)));
}

/// Reads numbers with a fixed number of digits from the front of a text.
class Digits {
 public:
  explicit Digits(std::string_view text) : text_(text) {}

  std::optional<int> take(std::size_t count, int least, int most) {
    int number = 0;
    // from_chars() takes a sign, too.
    if (text_.find_first_not_of("0123456789") < count || text_.size() < count) return std::nullopt;
    const auto [stop, error] = std::from_chars(text_.data(), text_.data() + count, number);
    if (error != std::errc() || stop != text_.data() + count || number < least || number > most)
      return std::nullopt;
    text_.remove_prefix(count);
    return number;
  }
  bool skip(std::string_view any_of) {
    if (text_.empty() || any_of.find(text_.front()) == std::string_view::npos) return false;
    text_.remove_prefix(1);
    return true;
  }
  /// Reads a fraction behind the point; 0 if there is none.
  double fraction() {
    if (text_.empty() || text_.front() != '.') return 0;
    const std::size_t end = text_.find_first_not_of("0123456789", 1);
    const auto number = text::whole_number<double>(text_.substr(0, end));
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end);
    return number.value_or(NAN);
  }
  [[nodiscard]] std::string_view rest() const noexcept { return text_; }

 private:
  std::string_view text_;
};

/// Returns the seconds by which a zone is ahead of UTC; nothing for a text that is no zone.
std::optional<int> read_zone(Digits digits) {
  if (digits.rest() == "Z") return 0;
  const bool is_behind = digits.rest().starts_with('-');
  if (!digits.skip("+-")) return std::nullopt;
  const auto hours = digits.take(2, 0, 23);
  const bool has_minutes = digits.skip(":") || !digits.rest().empty();
  const auto minutes = has_minutes ? digits.take(2, 0, 59) : std::optional(0);
  if (!hours || !minutes || !digits.rest().empty()) return std::nullopt;
  const int ahead = (*hours * 60 + *minutes) * 60;
  return is_behind ? -ahead : ahead;
}

/// Whether the calendar has this day: mktime(3) would take February 30 for March 2.
bool is_day(const std::tm& date) {
  constexpr std::array<int, 12> days{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const int year = date.tm_year + 1900;
  const bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  const int most = days.at(static_cast<std::size_t>(date.tm_mon)) + (date.tm_mon == 1 && is_leap ? 1 : 0);
  return date.tm_mday <= most;
}

/// Reads hours, minutes, and seconds if they are there.
bool read_clock(Digits& digits, std::tm& date, double& fraction) {
  const auto hour = digits.take(2, 0, 23);
  if (!hour || !digits.skip(":")) return false;
  const auto minute = digits.take(2, 0, 59);
  if (!minute) return false;
  date.tm_hour = *hour;
  date.tm_min = *minute;
  if (!digits.skip(":")) return true;
  const auto second = digits.take(2, 0, 59);
  if (!second) return false;
  date.tm_sec = *second;
  fraction = digits.fraction();
  return true;
}

std::optional<double> read_date(std::string_view text) {
  Digits digits(text);
  const auto year = digits.take(4, 1970, 9999);
  if (!year || !digits.skip("-")) return std::nullopt;
  const auto month = digits.take(2, 1, 12);
  if (!month || !digits.skip("-")) return std::nullopt;
  const auto day = digits.take(2, 1, 31);
  if (!day) return std::nullopt;
  std::tm date{};
  date.tm_year = *year - 1900;
  date.tm_mon = *month - 1;
  date.tm_mday = *day;
  date.tm_isdst = -1;
  if (!is_day(date)) return std::nullopt;
  double fraction = 0;
  if (digits.skip("T ") && !read_clock(digits, date, fraction)) return std::nullopt;
  if (digits.rest().empty()) return static_cast<double>(std::mktime(&date)) + fraction;
  const auto zone = read_zone(digits);
  if (!zone) return std::nullopt;
  return static_cast<double>(::timegm(&date)) - *zone + fraction;
}

/// Reads `18:30` or `18:30:05` in local time, which is the next or the last such time, or a word of Slurm for
/// one.
std::optional<double> read_time_of_day(std::string_view text, double now, bool is_back) {
  const auto begun = static_cast<std::time_t>(std::floor(now));
  std::tm date{};
  ::localtime_r(&begun, &date);
  date.tm_hour = date.tm_min = date.tm_sec = 0;
  date.tm_isdst = -1;
  const auto on_day = [&](int days) {
    std::tm other = date;
    other.tm_mday += days;
    return static_cast<double>(std::mktime(&other));
  };
  // Slurm takes a day alone, or beside a time of it in either order.
  std::optional<int> day;
  for (const auto& [word, days] : {std::pair(std::string_view("today"), 0), {"tomorrow", 1}}) {
    if (text == word) return on_day(days);
    const bool is_first = text.starts_with(word) && text.substr(word.size()).starts_with(' ');
    const bool is_last = text.ends_with(word) && text.substr(0, text.size() - word.size()).ends_with(' ');
    if (!is_first && !is_last) continue;
    day = days;
    text = is_first ? text.substr(word.size() + 1) : text.substr(0, text.size() - word.size() - 1);
    break;
  }
  double fraction = 0;
  const std::string padded = text.find(':') == 1 ? fmt::format("0{}", text) : std::string(text);
  Digits digits(padded);
  if (text == "noon") {
    date.tm_hour = 12;
  } else if (text != "midnight" && (!read_clock(digits, date, fraction) || !digits.rest().empty())) {
    return std::nullopt;
  }
  if (day) return on_day(*day) + fraction;
  const double time = on_day(0) + fraction;
  if (is_back) return time > now ? on_day(-1) + fraction : time;
  return time < now ? on_day(1) + fraction : time;
}

/// Reads `1h30m`, `1w` or `2hours`: each number has a unit.
std::optional<double> read_units(std::string_view text) {
  double sum = 0;
  do {
    const std::size_t letters = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::size_t next = std::min(text.find_first_of("0123456789", letters), text.size());
    const auto number = text::whole_number<double>(text.substr(0, letters));
    const auto seconds = text::seconds_of_unit(text.substr(letters, next - letters));
    if (!number || !seconds) return std::nullopt;
    sum += *number * *seconds;
    text.remove_prefix(next);
  } while (!text.empty());
  return sum;
}

/// Reads the durations of Slurm with days, `1-12`, `1-12:30` or `1-12:30:05`, and `36:30:05`. Refuses
/// `30:05`, which are minutes and seconds for Slurm, but hours and minutes for most readers.
std::optional<double> read_columns(std::string_view text) {
  const std::size_t first = text.find_first_of("-:");
  if (first == 0 || first > 3) return std::nullopt;
  const bool has_days = text[first] == '-';
  if (!has_days && std::ranges::count(text, ':') != 2) return std::nullopt;
  Digits digits(text);
  double sum = 0;
  if (has_days) {
    const auto days = digits.take(first, 0, 999);
    if (!days || !digits.skip("-")) return std::nullopt;
    sum += *days * 86400.0;
  }
  const auto hours = has_days ? digits.take(2, 0, 23) : digits.take(first, 0, 999);
  if (!hours) return std::nullopt;
  sum += *hours * 3600.0;
  for (const double unit : {60.0, 1.0}) {
    if (!digits.skip(":")) break;
    const auto number = digits.take(2, 0, 59);
    if (!number) return std::nullopt;
    sum += *number * unit;
  }
  if (!digits.rest().empty()) return std::nullopt;
  return sum;
}

std::optional<double> read_duration(std::string_view text) {
  try {
    const Seconds duration = parse_span(text);
    if (duration < forever) return to_number(duration);
  } catch (const Error&) {
    return std::nullopt;
  }
  return std::nullopt;
}

/// Reads `now`, or `now+2hours`, where a number without a unit is in seconds.
std::optional<double> read_from_now(std::string_view text, double now) {
  if (!text.starts_with("now")) return std::nullopt;
  text.remove_prefix(3);
  if (text.empty()) return now;
  if (text.front() != '+' && text.front() != '-') return std::nullopt;
  const auto duration = read_duration(text.substr(1));
  if (!duration) return std::nullopt;
  return text.front() == '-' ? now - *duration : now + *duration;
}

}  // namespace

Seconds parse_span(std::string_view text) {
  try {
    return text::parse_duration(text, text::DurationUnits::with_weeks);
  } catch (const Error&) {
    const bool has_columns = text.find_first_of("-:") != std::string_view::npos;
    const auto seconds = has_columns ? read_columns(text) : read_units(text);
    if (!seconds || !std::isfinite(*seconds)) throw;
    return Seconds(*seconds);
  }
}

WallTime parse_time(std::string_view text, WallTime now, Unsigned direction) {
  const double from = to_number(now);
  std::optional<double> time;
  const bool is_signed = text.starts_with('+') || text.starts_with('-');
  const bool is_back = is_signed ? text.front() == '-' : direction == Unsigned::back;
  // Refuse 0x10: a number without a sign or unit is a time, and only durations may be hexadecimal.
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  // Without a sign 18:30:05 is a time of day, and a duration only with one.
  const bool is_clock = text.find(':') < text.find('-');
  if (!is_signed) time = text::whole_number<double>(text);
  if (!time && (is_signed || !(is_hexadecimal || is_clock))) {
    const auto duration = read_duration(is_signed ? text.substr(1) : text);
    if (duration) time = from + (is_back ? -*duration : *duration);
  }
  // Words are in any case, as in Slurm.
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  if (!time) time = read_from_now(lower, from);
  if (!time) time = read_time_of_day(lower, from, is_back);
  if (!time) time = read_date(text);
  if (!time || !std::isfinite(*time) || *time < 0 || *time > to_number(last_time)) refuse(text);
  return wall_time(*time);
}

bool is_date_in_seconds(std::string_view text) {
  constexpr std::string_view form = "2026-11-22T18:30:05";
  return text.size() >= form.size() && text[form.rfind(':')] == ':' &&
         text.find('.') == std::string_view::npos && read_date(text).has_value();
}

WallTime parse_expiration(std::string_view text, WallTime now) {
  if (text == "never") return {};
  if (text.starts_with('-')) refuse(text);
  return parse_time(text, now, Unsigned::ahead);
}

}  // namespace resourced::cli::commands

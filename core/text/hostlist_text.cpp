// The text form of Hostlist (RFC 29).

#include <algorithm>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/digits.hpp"
#include "core/text/host_name.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/quote.hpp"

namespace resourced::text {

namespace {

/// One expression `prefix[numbers]suffix`; a name without brackets has only a prefix.
struct Expression {
  struct Range {
    std::uint64_t first;
    std::uint32_t count;
  };

  std::string_view prefix;
  bool brackets = false;
  /// Minimum number of digits.
  std::size_t width = 1;
  std::vector<Range> ranges;
  std::string_view suffix;
};

class HostlistReader {
 public:
  explicit HostlistReader(std::string_view text) : text_(text) {}

  /// Reads the next expression into `expression`, whose memory is used again. Returns false at the end.
  bool next(Expression& expression) {
    if (at_ == text_.size() && !more_) return false;
    expression.prefix = word();
    expression.brackets = take('[');
    if (expression.brackets) {
      numbers(expression);
      if (!take(']')) fail(at_ == text_.size() ? "the bracket is not closed" : unexpected());
      const std::size_t suffix_at = at_;
      expression.suffix = word();
      check_length(
          expression.prefix.size() + std::max(expression.width, max_number_digits) + expression.suffix.size(),
          suffix_at);
    } else {
      if (expression.prefix.empty())
        fail(at_ == text_.size() || text_[at_] == ',' ? "a host is missing" : unexpected());
      check_length(expression.prefix.size(), at_ - expression.prefix.size());
    }
    more_ = take(',');
    if (!more_ && at_ < text_.size()) fail(unexpected());
    return true;
  }

 private:
  [[noreturn]] void fail(std::string_view reason, int errnum = EINVAL) const { fail_at(at_, reason, errnum); }

  [[noreturn]] void fail_at(std::size_t place, std::string_view reason, int errnum = EINVAL) const {
    throw Error(errnum,
                fmt::format("{} is not a hostlist: {} at character {}", quoted(text_), reason, place + 1));
  }

  [[nodiscard]] std::string unexpected() const { return quoted(text_.substr(at_, 1)) + " is not expected"; }

  void check_length(std::size_t length, std::size_t place) const {
    if (length > max_host_name) fail_at(place, "the name is too long");
  }

  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string_view word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_host_char(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::string_view digits() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == begin)
      fail(at_ == text_.size() ? "a number is missing" : quoted(text_.substr(at_, 1)) + " is not a number");
    return text_.substr(begin, at_ - begin);
  }

  std::uint64_t value(std::string_view number) const {
    const std::size_t zeros = std::min(number.find_first_not_of('0'), number.size());
    if (number.size() - zeros > max_number_digits) fail_at(at_ - number.size(), "the number is too large");
    return read_host_number(number.substr(zeros)).value;
  }

  void numbers(Expression& expression) {
    expression.ranges.clear();
    std::size_t room = Hostlist::max_expansion;
    do {
      const std::size_t place = at_;
      const std::string_view from = digits();
      const std::uint64_t first = value(from);
      const std::uint64_t last = take('-') ? value(digits()) : first;
      if (expression.ranges.empty()) expression.width = from.front() == '0' ? from.size() : 1;
      if (last < first) fail_at(place, "the range runs backwards");
      if (last - first >= room)
        fail_at(place, fmt::format("there are more than {} hosts in one expression", Hostlist::max_expansion),
                ERANGE);
      const auto count = static_cast<std::uint32_t>(last - first + 1);
      room -= count;
      expression.ranges.push_back({.first = first, .count = count});
    } while (take(','));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool more_ = false;
};

}  // namespace

/// Adds the hosts of a range in brackets. Digits at the end of the prefix become part of the numbers, as they
/// would for the same hosts one by one. Requires that no number has more than max_number_digits.
void Hostlist::add_numbers(std::string_view prefix_text, std::string_view suffix_text, std::uint64_t first,
                           std::uint32_t count, std::uint32_t width) {
  const bool digit_before = !prefix_text.empty() && is_digit(prefix_text.back());
  if (count == 1 && (digit_before || std::any_of(suffix_text.begin(), suffix_text.end(), is_digit))) {
    std::string host(prefix_text);
    write_host_number(host, first, width);
    add_name(host.append(suffix_text));
    return;
  }
  if (!digit_before) {
    add_range(prefix_text, suffix_text, first, count, width);
    return;
  }
  const std::string_view digits = split_host_name(prefix_text).digits;
  for (std::uint32_t added = 0; added < count;) {
    // Bounds of the numbers that are written with as many digits as this one.
    const std::uint64_t number = first + added;
    const std::size_t length = std::max<std::size_t>(digit_count(number), width);
    const std::uint64_t beyond = smallest_with_digits(length + 1);
    const auto same_length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(count - added, beyond - number));
    const std::size_t joined = std::min(digits.size(), max_number_digits - length);
    const std::string_view before = digits.substr(digits.size() - joined);
    add_range(prefix_text.substr(0, prefix_text.size() - joined), suffix_text,
              read_host_number(before).value * beyond + number, same_length,
              static_cast<std::uint32_t>(joined + length));
    added += same_length;
  }
}

Hostlist Hostlist::parse(std::string_view text) {
  Hostlist hosts;
  HostlistReader reader(text);
  std::string prefix_text;
  for (Expression expression; reader.next(expression);) {
    if (!expression.brackets) {
      hosts.check_room(1);
      hosts.add_name(expression.prefix);
      continue;
    }
    // Leading zeros beyond max_number_digits belong to the prefix.
    const std::size_t width = std::min(expression.width, max_number_digits);
    prefix_text.assign(expression.prefix).append(expression.width - width, '0');
    for (const auto [first, count] : expression.ranges) {
      hosts.check_room(count);
      hosts.add_numbers(prefix_text, expression.suffix, first, count, static_cast<std::uint32_t>(width));
    }
  }
  return hosts;
}

std::string Hostlist::encode() const {
  std::string out;
  const Stem* stem = nullptr;
  std::size_t bracket = 0;
  std::uint32_t width = 0;
  std::size_t hosts = 0;
  const auto open = [&](const Run& run) {
    if (!out.empty()) out += ',';
    stem = &stems_[run.stem];
    out += prefix(*stem);
    bracket = out.size();
    hosts = 0;
  };
  const auto close = [&] {
    if (stem == nullptr) return;
    hosts > 1 ? out += ']' : out.erase(bracket, 1);
    out += suffix(*stem);
    stem = nullptr;
  };
  const auto is_open_for = [&](const Run& run, std::uint64_t number) {
    if (stem == nullptr || hosts == max_expansion) return false;
    // The first number in the brackets tells how all of them are written.
    if (least_width(number, width) != least_width(number, run.width)) return false;
    return stem == &stems_[run.stem] || is_stem(*stem, prefix(stems_[run.stem]), suffix(stems_[run.stem]));
  };

  for (const Run& run : runs_) {
    if (run.width == 0) {
      close();
      open(run);
      stem = nullptr;
      continue;
    }
    for (std::uint32_t done = 0; done < run.count;) {
      const std::uint64_t number = run.first + done;
      if (is_open_for(run, number)) {
        out += ',';
      } else {
        close();
        open(run);
        out += '[';
        width = least_width(number, run.width);
      }
      const auto count =
          static_cast<std::uint32_t>(std::min<std::size_t>(run.count - done, max_expansion - hosts));
      write_host_number(out, number, width);
      if (count > 1) {
        out += '-';
        write_host_number(out, number + (count - 1), width);
      }
      done += count;
      hosts += count;
    }
  }
  close();
  return out;
}

}  // namespace resourced::text

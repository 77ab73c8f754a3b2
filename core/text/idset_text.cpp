// The text form of IdSet (RFC 22).

#include <array>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/digits.hpp"
#include "core/text/idset.hpp"
#include "core/text/idset_builder.hpp"
#include "core/text/quote.hpp"

namespace resourced::text {

namespace {

[[noreturn]] void fail(std::string_view text, std::string_view reason) {
  throw Error(EINVAL, fmt::format("{} is not an idset: {}", quoted(text), reason));
}

[[noreturn]] void fail_at_number(std::string_view text, std::string_view rest, std::size_t digits) {
  if (rest.empty()) fail(text, "a number is missing at the end");
  if (digits == 0) fail(text, fmt::format("{} is not a number", quoted(rest)));
  const std::string number = quoted(rest.substr(0, digits));
  if (rest.front() == '0') fail(text, fmt::format("{} has a leading zero", number));
  fail(text, fmt::format("{} is above {}", number, IdSet::max_id));
}

/// Returns the text inside the brackets, or the whole text if it has none.
std::string_view without_brackets(std::string_view text) {
  if (!text.starts_with('[')) return text;
  if (!text.ends_with(']')) fail(text, "the bracket is not closed");
  return text.substr(1, text.size() - 2);
}

}  // namespace

IdSet IdSet::parse(std::string_view text) {
  std::string_view rest = without_brackets(text);
  if (rest.empty()) return {};
  const auto number = [&]() __attribute__((always_inline))->Id {
    const Digits digits = read_digits(rest);
    const bool leading_zero = digits.size > 1 && rest.front() == '0';
    if (digits.size == 0 || leading_zero || digits.overflow || digits.value > max_id)
      fail_at_number(text, rest, digits.size);
    rest.remove_prefix(digits.size);
    return static_cast<Id>(digits.value);
  };

  IdSetBuilder ids;
  for (Id next = 0;;) {
    const Id first = number();
    Id last = first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      last = number();
      if (last < first) fail(text, fmt::format("the range {}-{} runs backwards", first, last));
    }
    if (first < next) fail(text, fmt::format("{} comes after {}, ids must ascend", first, next - 1));
    // Most sets in an R are one range, for which the builder would allocate memory.
    if (next == 0 && rest.empty()) return range(first, last);
    ids.append(first, last);
    next = last + 1;
    if (rest.empty()) return ids.take();
    if (!rest.starts_with(',')) fail(text, fmt::format("{} is not expected", quoted(rest)));
    rest.remove_prefix(1);
  }
}

std::string IdSet::encode() const {
  std::string out;
  encode_to(out);
  return out;
}

void IdSet::encode_to(std::string& out) const {
  if (empty()) return;
  std::size_t runs = 0;
  for (const Part& part : parts_) runs += part.block ? part.block->runs() : 1;
  out.reserve(out.size() + runs * (fmt::format_int(last()).size() + 1));

  // The text is collected in pieces, because growing a string by a few characters at a time costs more than
  // writing the digits.
  std::array<char, 4096> piece;
  char* const limit = piece.data() + piece.size() - 2 * DigitWriter::room;
  char* end = piece.data();
  DigitWriter digits;
  for_each_range([&](Range range) __attribute__((always_inline)) {
    if (end > limit) {
      out.append(piece.data(), end);
      end = piece.data();
    }
    end = digits.write(end, range.first);
    if (range.last != range.first) {
      *end++ = '-';
      end = digits.write(end, range.last);
    }
    *end++ = ',';
  });
  out.append(piece.data(), end - 1);
}

}  // namespace resourced::text

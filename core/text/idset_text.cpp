// The text form of IdSet (RFC 22).

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/idset.hpp"
#include "core/text/idset_builder.hpp"
#include "core/text/quote.hpp"

namespace resourced {

namespace {

class IdSetReader {
 public:
  explicit IdSetReader(std::string_view text) : text_(text), rest_(text) {}

  IdSet read() {
    if (rest_.starts_with('[')) {
      if (!rest_.ends_with(']')) fail("the bracket is not closed");
      rest_ = rest_.substr(1, rest_.size() - 2);
    }
    if (rest_.empty()) return {};
    IdSetBuilder ids;
    IdSet::Id next = 0;
    while (true) {
      const IdSet::Id first = number();
      IdSet::Id last = first;
      if (rest_.starts_with('-')) {
        rest_.remove_prefix(1);
        last = number();
        if (last < first) fail(fmt::format("the range {}-{} runs backwards", first, last));
      }
      if (first < next) fail(fmt::format("{} comes after {}, ids must ascend", first, next - 1));
      ids.append(first, last);
      next = last + 1;
      if (rest_.empty()) return ids.take();
      if (!rest_.starts_with(',')) fail(fmt::format("{} is not expected", quoted(rest_)));
      rest_.remove_prefix(1);
    }
  }

 private:
  [[noreturn]] void fail(std::string_view reason) const {
    throw Error(EINVAL, fmt::format("{} is not an idset: {}", quoted(text_), reason));
  }

  IdSet::Id number() {
    IdSet::Id id = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), id);
    const auto digits = static_cast<std::size_t>(end - rest_.data());
    if (digits == 0)
      fail(rest_.empty() ? "a number is missing at the end"
                         : fmt::format("{} is not a number", quoted(rest_)));
    if (error != std::errc{} || id > IdSet::max_id)
      fail(fmt::format("{} is above {}", quoted(rest_.substr(0, digits)), IdSet::max_id));
    if (digits > 1 && rest_.front() == '0')
      fail(fmt::format("{} has a leading zero", quoted(rest_.substr(0, digits))));
    rest_.remove_prefix(digits);
    return id;
  }

  std::string_view text_;
  std::string_view rest_;
};

}  // namespace

IdSet IdSet::parse(std::string_view text) { return IdSetReader(text).read(); }

std::string IdSet::encode() const {
  std::string out;
  encode_to(out);
  return out;
}

void IdSet::encode_to(std::string& out) const {
  // Collected in pieces, because growing a string by a few characters at a time costs more than the digits.
  constexpr std::size_t longest_range = std::string_view("4294967294-4294967294,").size();
  std::array<char, 4096> piece;
  char* const limit = piece.data() + piece.size();
  char* end = piece.data();
  for_each_range([&](Range range) {
    if (static_cast<std::size_t>(limit - end) < longest_range) {
      out.append(piece.data(), end);
      end = piece.data();
    }
    end = std::to_chars(end, limit, range.first).ptr;
    if (range.last != range.first) {
      *end++ = '-';
      end = std::to_chars(end, limit, range.last).ptr;
    }
    *end++ = ',';
  });
  if (end == piece.data()) return;
  out.append(piece.data(), end - 1);
}

}  // namespace resourced

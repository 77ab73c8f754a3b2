#include "core/text/count.hpp"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/quote.hpp"

namespace resourced::text {

namespace {

std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// Returns base to the power of exponent, nothing if it overflows. Requires base >= 2, so that it overflows
/// after 64 multiplications at most.
std::optional<std::uint64_t> power(std::uint64_t base, std::uint64_t exponent) {
  std::optional<std::uint64_t> result = 1;
  for (; result && exponent > 0; --exponent) result = product(*result, base);
  return result;
}

/// Returns the reason why a range is invalid, or "" for a valid one.
std::string_view defect(const Count::Range& parts) {
  const Count::Operator op = parts.op.value_or(Count::Operator::add);
  const std::uint64_t operand = parts.operand.value_or(1);
  if (parts.min < 1) return "the minimum is 0";
  if (parts.max && *parts.max < parts.min) return "the maximum is below the minimum";
  if (operand < 1) return "the operand is 0";
  if (op != Count::Operator::add && operand < 2) return "the operators * and ^ need an operand of 2 or more";
  if (op == Count::Operator::power && parts.min < 2) return "the operator ^ needs a minimum of 2 or more";
  return "";
}

/// Reads the text of an integer or a range, without its brackets.
class CountReader {
 public:
  CountReader(std::string_view text, std::string_view inside) : text_(text), rest_(inside) {}

  Count read() {
    Count::Range parts{.min = number(), .max = {}, .operand = {}, .op = {}};
    if (rest_.empty()) {
      if (parts.min == 0) fail("a count is 1 or more");
      return Count::integer(parts.min);
    }
    if (take('-')) {
      parts.max = number();
    } else if (!take('+')) {
      unexpected();
    }
    if (take(':')) {
      parts.operand = number();
      if (take(':')) parts.op = op();
    }
    if (!rest_.empty()) unexpected();
    if (const std::string_view reason = defect(parts); !reason.empty()) fail(reason);
    return Count::range(parts);
  }

 private:
  [[noreturn]] void fail(std::string_view reason) const {
    throw Error(EINVAL, fmt::format("{} is not a count: {}", quoted(text_), reason));
  }

  [[noreturn]] void unexpected() const { fail(fmt::format("{} is not expected", quoted(rest_))); }

  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::uint64_t number() {
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
    const std::string_view digits = rest_.substr(0, static_cast<std::size_t>(end - rest_.data()));
    if (digits.empty()) fail(rest_.empty() ? "a number is missing" : quoted(rest_) + " is not a number");
    if (error != std::errc{}) fail(quoted(digits) + " does not fit in 64 bits");
    if (digits.size() > 1 && digits.front() == '0') fail(quoted(digits) + " has a leading zero");
    rest_.remove_prefix(digits.size());
    return n;
  }

  Count::Operator op() {
    if (take('+')) return Count::Operator::add;
    if (take('*')) return Count::Operator::multiply;
    if (take('^')) return Count::Operator::power;
    fail(rest_.empty() ? "an operator is missing" : quoted(rest_) + " is not an operator (+, *, ^)");
  }

  std::string_view text_;
  std::string_view rest_;
};

}  // namespace

Count Count::integer(std::uint64_t n) {
  if (n == 0) throw Error(EINVAL, "0 is not a count: a count is 1 or more");
  Count count;
  count.min_ = n;
  count.max_ = n;
  return count;
}

Count Count::range(const Range& parts) {
  if (const std::string_view reason = defect(parts); !reason.empty())
    throw Error(EINVAL, fmt::format("the range is not a count: {}", reason));
  Count count;
  count.kind_ = Kind::range;
  count.min_ = parts.min;
  count.max_ = parts.max;
  count.operand_ = parts.operand.value_or(1);
  count.op_ = parts.op.value_or(Operator::add);
  count.states_step_ = parts.max || parts.operand || parts.op;
  return count;
}

Count Count::ids(IdSet numbers) {
  if (numbers.empty()) throw Error(EINVAL, "an empty set is not a count");
  if (numbers.contains(0))
    throw Error(EINVAL,
                fmt::format("{} is not a count: a count is 1 or more", text::quoted(numbers.encode())));
  if (numbers.count() == 1) return integer(numbers.first());
  Count count;
  count.kind_ = Kind::idset;
  count.min_ = numbers.first();
  count.max_ = numbers.last();
  count.ids_ = std::move(numbers);
  return count;
}

Count Count::parse(std::string_view text) {
  std::string_view inside = text;
  if (inside.size() >= 2 && inside.front() == '[' && inside.back() == ']')
    inside = inside.substr(1, inside.size() - 2);
  if (inside.find(',') != std::string_view::npos) return ids(IdSet::parse(text));
  return CountReader(text, inside).read();
}

std::string Count::encode() const {
  switch (kind_) {
    case Kind::integer:
      return fmt::format("{}", min_);
    case Kind::idset: {
      const IdSet::Id first = ids_.first();
      const bool one_run = ids_.last() - first == ids_.count() - 1;
      // `2-5` would read as a range; `2,3-5` is the set.
      if (one_run) return fmt::format("{},{}", first, (ids_ - IdSet{first}).encode());
      return ids_.encode();
    }
    case Kind::range:
      break;
  }
  std::string text = max_ ? fmt::format("{}-{}", min_, *max_) : fmt::format("{}+", min_);
  const bool plain = operand_ == 1 && op_ == Operator::add;
  if (plain && (max_ || !states_step_)) return text;
  text += fmt::format(":{}", operand_);
  if (op_ != Operator::add) text += {':', static_cast<char>(op_)};
  return text;
}

bool Count::accepts(std::uint64_t n) const noexcept {
  if (n < min_ || (max_ && n > *max_)) return false;
  if (kind_ == Kind::integer) return true;
  if (kind_ == Kind::idset) return ids_.contains(static_cast<IdSet::Id>(n));
  if (op_ == Operator::add) return (n - min_) % operand_ == 0;
  std::optional<std::uint64_t> reached = min_;
  while (reached && *reached < n)
    reached = op_ == Operator::multiply ? product(*reached, operand_) : power(*reached, operand_);
  return reached == n;
}

}  // namespace resourced::text

// How many of a resource a request accepts (RFC 14): a number, a range (RFC 45) or a set of numbers (RFC 22),
// and its text form. The other forms that RFC 14 allows, a JSON integer and a dictionary, are read in
// core/jobspec, which builds a Count from their parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/text/idset.hpp"

#pragma GCC visibility push(default)
namespace resourced::text {

class Count {
 public:
  enum class Kind : std::uint8_t { integer, range, idset };
  /// The operator of a range, which steps from min towards max: x + operand, x * operand, x to the power of
  /// operand.
  enum class Operator : char { add = '+', multiply = '*', power = '^' };

  /// The default count: exactly 1.
  Count() = default;

  /// A count of exactly n. Throws Error EINVAL for 0.
  [[nodiscard]] static Count integer(std::uint64_t n);

  /// The parts of a range, as given by a text or a dictionary.
  struct Range {
    std::uint64_t min = 1;
    std::optional<std::uint64_t> max;
    std::optional<std::uint64_t> operand;
    std::optional<Operator> op;
  };
  /// A missing operator is add; a missing operand is 1. Throws Error EINVAL unless min >= 1, max >= min,
  /// operand >= 1, for multiply and power operand >= 2, and for power min >= 2.
  [[nodiscard]] static Count range(const Range& parts);

  /// A count that accepts any of these numbers; a set of one number becomes an integer. Throws Error EINVAL
  /// for an empty set and for one with 0.
  [[nodiscard]] static Count ids(IdSet numbers);

  /// Reads an integer, a range or an idset, with or without square brackets; `3-30` is a range.
  /// Throws Error EINVAL that shows the text and says what is wrong with it.
  [[nodiscard]] static Count parse(std::string_view text);
  /// The shortest text that parses to this count: no brackets, and no operator or operand that is the
  /// default.
  [[nodiscard]] std::string encode() const;

  [[nodiscard]] Kind kind() const noexcept { return kind_; }

  /// The smallest number that this count accepts, whatever its kind.
  [[nodiscard]] std::uint64_t min() const noexcept { return min_; }
  /// The upper limit: the number itself of an integer, the largest number of a set, none for an open range.
  /// The steps of a range may miss it (`1-6:2` has max 6 and accepts 5 at most).
  [[nodiscard]] std::optional<std::uint64_t> max() const noexcept { return max_; }
  /// The step of a range; 1 and add for the other kinds.
  [[nodiscard]] std::uint64_t operand() const noexcept { return operand_; }
  [[nodiscard]] Operator op() const noexcept { return op_; }
  /// Whether a dictionary of RFC 14 states operand and operator: for `2+` it does not, for `2+:1` and for
  /// every range with a max it does.
  [[nodiscard]] bool states_step() const noexcept { return states_step_; }
  /// The numbers of a set; empty for the other kinds.
  [[nodiscard]] const IdSet& ids() const noexcept { return ids_; }

  /// Whether n is acceptable. Takes at most one step for each bit of n.
  [[nodiscard]] bool accepts(std::uint64_t n) const noexcept;

  friend bool operator==(const Count& a, const Count& b) = default;

 private:
  Kind kind_ = Kind::integer;
  Operator op_ = Operator::add;
  bool states_step_ = false;
  std::uint64_t min_ = 1;
  std::optional<std::uint64_t> max_ = 1;
  std::uint64_t operand_ = 1;
  IdSet ids_;
};

}  // namespace resourced::text
#pragma GCC visibility pop

// Count against RFC 45, and the additions of RFC 14 and RFC 22.

#include "core/text/count.hpp"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "reason_of.hpp"

using resourced::Error;
using resourced::test::reason_of;
using resourced::text::Count;
using resourced::text::IdSet;
using Kind = Count::Kind;
using Operator = Count::Operator;

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

std::vector<std::uint64_t> accepted_up_to(const Count& count, std::uint64_t limit) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t n = 0; n <= limit; ++n) {
    if (count.accepts(n)) numbers.push_back(n);
  }
  return numbers;
}

}  // namespace

TEST_CASE("RFC 45: what a count accepts") {
  struct Row {
    const char* text;
    Kind kind;
    std::vector<std::uint64_t> accepted;  // numbers up to 40
    std::uint64_t min;
    const char* canonical;
  };
  const std::vector<Row> rows = {
      {"1", Kind::integer, {1}, 1, "1"},
      {"17", Kind::integer, {17}, 17, "17"},
      {"[17]", Kind::integer, {17}, 17, "17"},
      {"1-5:2", Kind::range, {1, 3, 5}, 1, "1-5:2"},
      {"1-6:2", Kind::range, {1, 3, 5}, 1, "1-6:2"},
      {"1-16:2:*", Kind::range, {1, 2, 4, 8, 16}, 1, "1-16:2:*"},
      {"3-30:3:*", Kind::range, {3, 9, 27}, 3, "3-30:3:*"},
      {"2-256:2:^", Kind::range, {2, 4, 16}, 2, "2-256:2:^"},
      {"3-40:3:^", Kind::range, {3, 27}, 3, "3-40:3:^"},
      {"3-6", Kind::range, {3, 4, 5, 6}, 3, "3-6"},
      {"[3-6]", Kind::range, {3, 4, 5, 6}, 3, "3-6"},
      {"3-6:1", Kind::range, {3, 4, 5, 6}, 3, "3-6"},
      {"3-6:1:+", Kind::range, {3, 4, 5, 6}, 3, "3-6"},
      {"3-9:3:+", Kind::range, {3, 6, 9}, 3, "3-9:3"},
      {"4-4", Kind::range, {4}, 4, "4-4"},
      {"38+", Kind::range, {38, 39, 40}, 38, "38+"},
      {"38+:1", Kind::range, {38, 39, 40}, 38, "38+:1"},
      {"[38+:1:+]", Kind::range, {38, 39, 40}, 38, "38+:1"},
      {"7+:11", Kind::range, {7, 18, 29, 40}, 7, "7+:11"},
      {"7+:2:*", Kind::range, {7, 14, 28}, 7, "7+:2:*"},
      {"4,9,16,25", Kind::idset, {4, 9, 16, 25}, 4, "4,9,16,25"},
      {"[4,9,16,25]", Kind::idset, {4, 9, 16, 25}, 4, "4,9,16,25"},
      {"1-3,7", Kind::idset, {1, 2, 3, 7}, 1, "1-3,7"},
      {"2,3,4", Kind::idset, {2, 3, 4}, 2, "2,3-4"},
      {"2,3", Kind::idset, {2, 3}, 2, "2,3"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Count count = Count::parse(row.text);
    CHECK(count.kind() == row.kind);
    CHECK(count.min() == row.min);
    CHECK(count.accepts(count.min()));
    CHECK(accepted_up_to(count, 40) == row.accepted);
    CHECK(count.encode() == row.canonical);
    CHECK(Count::parse(count.encode()) == count);
  }
}

TEST_CASE("RFC 45: the parts of a range") {
  const Count count = Count::parse("2-256:2:^");
  CHECK(count.min() == 2);
  CHECK(count.max() == 256);
  CHECK(count.operand() == 2);
  CHECK(count.op() == Operator::power);
  CHECK(count.states_step());
  CHECK(count.accepts(256));

  const Count open = Count::parse("2+");
  CHECK(open.max() == std::nullopt);
  CHECK(open.operand() == 1);
  CHECK(open.op() == Operator::add);
  CHECK_FALSE(open.states_step());
  CHECK(Count::parse("2+:1").states_step());
  CHECK(Count::parse("3-30").states_step());
  CHECK_FALSE(open == Count::parse("2+:1"));

  CHECK(Count::range({.min = 2, .max = {}, .operand = {}, .op = {}}) == open);
  CHECK(Count::range({.min = 3, .max = 30, .operand = {}, .op = {}}) == Count::parse("3-30"));
  CHECK(Count::range({.min = 1, .max = 16, .operand = 2, .op = Operator::multiply}) ==
        Count::parse("1-16:2:*"));
  CHECK(Count::integer(5) == Count::parse("5"));
  CHECK(Count::ids(IdSet{4, 9}) == Count::parse("4,9"));
  CHECK(Count::ids(IdSet{4, 9}).max() == 9);
  CHECK(Count::ids(IdSet{4, 9}).ids() == IdSet{4, 9});
  CHECK(Count::ids(IdSet{4}) == Count::integer(4));
  CHECK(Count() == Count::integer(1));
}

TEST_CASE("RFC 45: what is not a count") {
  struct Row {
    std::string text;
    const char* reason;
  };
  const std::vector<Row> rows = {
      {"", "a number is missing"},
      {"[]", "a number is missing"},
      {"0", "1 or more"},
      {"00", "leading zero"},
      {"01", "\"01\" has a leading zero"},
      {"0+", "the minimum is 0"},
      {"0-3", "the minimum is 0"},
      {"01-3", "leading zero"},
      {"1-03", "leading zero"},
      {"1-3:02", "leading zero"},
      {"30-3", "the maximum is below the minimum"},
      {"1-0", "the maximum is below the minimum"},
      {"1-5:0", "the operand is 0"},
      {"1+:0", "the operand is 0"},
      {"1-5:0:*", "the operand is 0"},
      {"1-16:1:*", "need an operand of 2 or more"},
      {"2-16:1:^", "need an operand of 2 or more"},
      {"1-16:2:^", "needs a minimum of 2 or more"},
      {"1-5:", "a number is missing"},
      {"1-5:2:", "an operator is missing"},
      {"1-5::+", "is not a number"},
      {"1-5:+", "is not a number"},
      {"1-5:2:-", "is not an operator"},
      {"1-5:2:+x", "\"x\" is not expected"},
      {"1-5:2+", "\"+\" is not expected"},
      {"1-", "a number is missing"},
      {"-1", "is not a number"},
      {"+", "is not a number"},
      {"+1", "is not a number"},
      {"1++", "\"+\" is not expected"},
      {"1+5", "\"5\" is not expected"},
      {"1:2", "\":2\" is not expected"},
      {"1-2-3", "\"-3\" is not expected"},
      {"1.5", "\".5\" is not expected"},
      {"x", "\"x\" is not a number"},
      {"1 ", "\" \" is not expected"},
      {" 1", "\" 1\" is not a number"},
      {"[1", "\"[1\" is not a number"},
      {"1]", "\"]\" is not expected"},
      {"[[1]]", "\"[1]\" is not a number"},
      {"[2+]:3", "\"[2+]:3\" is not a number"},
      {"18446744073709551616", "does not fit in 64 bits"},
      {"1-99999999999999999999999999", "does not fit in 64 bits"},
      {"0,4", "1 or more"},
      {"4,", "is not an idset"},
      {"4,3", "is not an idset"},
      {"4,9:2", "is not an idset"},
      {"4,9+", "is not an idset"},
      {"1,4294967295", "is not an idset"},
      {std::string("1\0", 2), "\"\\x00\" is not expected"},
      {"\xd9\xa1", "is not a number"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string reason = reason_of<Count>(row.text);
    CHECK_MESSAGE(reason.find(row.reason) != std::string::npos, reason);
    CHECK(reason.find(" is not a") != std::string::npos);
    CHECK(reason.find('\0') == std::string::npos);
  }
  for (const std::string& text :
       {std::string(100'000, '9'), std::string(100'000, '['), "1-" + std::string(100'000, '+')})
    CHECK(reason_of<Count>(text).size() < 700);
  CHECK_THROWS_AS((void)Count::integer(0), Error);
  CHECK_THROWS_AS((void)Count::ids(IdSet()), Error);
  CHECK_THROWS_AS((void)Count::ids(IdSet{0, 1}), Error);
  CHECK_THROWS_AS((void)Count::range({.min = 3, .max = 2, .operand = {}, .op = {}}), Error);
  CHECK_THROWS_AS((void)Count::range({.min = 1, .max = 2, .operand = {}, .op = Operator::multiply}), Error);
}

TEST_CASE("the largest numbers do not wrap") {
  const Count all = Count::parse("1-18446744073709551615");
  CHECK(all.accepts(most));
  CHECK_FALSE(all.accepts(0));
  const Count step = Count::parse("2+:18446744073709551615");
  CHECK(step.accepts(2));
  CHECK_FALSE(step.accepts(1));
  CHECK_FALSE(step.accepts(most));
  const Count doubling = Count::parse("1+:2:*");
  CHECK(doubling.accepts(std::uint64_t{1} << 63));
  CHECK_FALSE(doubling.accepts(most));
  CHECK_FALSE(doubling.accepts((std::uint64_t{1} << 63) + 1));
  const Count squaring = Count::parse("2+:2:^");
  CHECK(squaring.accepts(std::uint64_t{1} << 32));
  CHECK_FALSE(squaring.accepts(std::uint64_t{1} << 33));
  CHECK_FALSE(squaring.accepts(most));
  const Count steep = Count::parse("2+:18446744073709551615:^");
  CHECK(steep.accepts(2));
  CHECK_FALSE(steep.accepts(4));
  CHECK_FALSE(steep.accepts(most));
  CHECK(Count::parse("18446744073709551615").accepts(most));
  CHECK_FALSE(Count::parse("4,9").accepts((std::uint64_t{1} << 32) + 4));
}

TEST_CASE("accepts agrees with walking the range") {
  std::mt19937 random(31);
  const auto any = [&](std::uint64_t n) {
    return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random);
  };
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    const Operator op = std::vector{Operator::add, Operator::multiply, Operator::power}[any(3)];
    Count::Range parts{.min = 2 + any(20), .max = {}, .operand = 2 + any(5), .op = op};
    if (any(2) == 0) parts.max = parts.min + any(1000);
    const Count count = Count::range(parts);
    CAPTURE(count.encode());
    const std::uint64_t limit = std::min(parts.max.value_or(1200), std::uint64_t{1200});
    std::vector<std::uint64_t> walked;
    for (std::uint64_t n = parts.min; n <= limit;) {
      walked.push_back(n);
      std::uint64_t next = n + *parts.operand;
      if (op == Operator::multiply) next = n * *parts.operand;
      if (op == Operator::power) {
        next = 1;
        for (std::uint64_t i = 0; i < *parts.operand && next <= limit; ++i) next *= n;
      }
      n = next;
    }
    CHECK(accepted_up_to(count, 1200) == walked);
    CHECK(Count::parse(count.encode()) == count);
  }
}

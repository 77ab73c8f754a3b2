// Durations against RFC 23.

#include "core/text/duration.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"

using resourced::Error;
using resourced::Seconds;
using resourced::wall_time;
using resourced::text::DurationUnits;
using resourced::text::format_duration;
using resourced::text::format_utc;
using resourced::text::list_of_units;
using resourced::text::parse_duration;
using resourced::text::seconds_of_unit;

TEST_CASE("RFC 23: accepted durations in seconds") {
  const double forever = std::numeric_limits<double>::infinity();
  struct Row {
    const char* text;
    double seconds;
  };
  const std::vector<Row> rows = {
      {"2ms", 0.002},
      {"0.1s", 0.1},
      {"30", 30},
      {"1.2h", 4320},
      {"5m", 300},
      {"5d", 432000},
      {"0", 0},
      {"0s", 0},
      {"0d", 0},
      {"1.5", 1.5},
      {"1.", 1},
      {".5", 0.5},
      {".5m", 30},
      {"1e3", 1000},
      {"1E3s", 1000},
      {"1e+3", 1000},
      {"1.5e-3", 0.0015},
      {"1e-3h", 3.6},
      {"007", 7},
      {"+5m", 300},
      {"100ms", 0.1},
      {"9ms", 0.009},
      {"1.1ms", 0.0011},
      {"1000000d", 86.4e9},
      {"0x10", 16},
      {"0X1P3s", 8},
      {"0x1p3s", 8},
      {"0x1.8p1m", 180},
      {"0x.8h", 1800},
      {"0x1p-1ms", 0.0005},
      {"+0xAs", 10},
      {"0x1.", 1},
      // In a hexadecimal number d is a digit, not a unit.
      {"0xd", 13},
      {"0x2p0d", 172800},
      {"inf", forever},
      {"INF", forever},
      {"Inf", forever},
      {"+inf", forever},
      {"infinity", forever},
      {"INFINITY", forever},
      {"iNfInItY", forever},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(parse_duration(row.text) == Seconds(row.seconds));
  }
}

TEST_CASE("RFC 23: what is not a duration") {
  struct Row {
    std::string text;
    const char* reason;
    int errnum = EINVAL;
  };
  const std::vector<Row> rows = {
      {"", "does not start with a number"},
      {"s", "does not start with a number"},
      {".", "does not start with a number"},
      {"..5", "does not start with a number"},
      {"+", "does not start with a number"},
      {"++5", "does not start with a number"},
      {"+-5", "does not start with a number"},
      {"-5", "negative"},
      {"-0", "negative"},
      {"-inf", "negative"},
      {"nan", "does not start with a number"},
      {"NaN", "does not start with a number"},
      {"nan(1)", "does not start with a number"},
      {"0x", "\"x\" is not a unit"},
      {"0xs", "\"xs\" is not a unit"},
      {"0x.", "\"x.\" is not a unit"},
      {"0x-1", "\"x-1\" is not a unit"},
      {"-0x10", "negative"},
      {"0x1p", "\"p\" is not a unit"},
      {"0x1p3x", "\"x\" is not a unit"},
      {"0x0x1", "\"x1\" is not a unit"},
      {"0x1p99999", "out of range", ERANGE},
      {"0xinf", "\"xinf\" is not a unit"},
      {"infs", "does not start with a number"},
      {"inf ", "does not start with a number"},
      {"infinite", "does not start with a number"},
      {"in", "does not start with a number"},
      {" 5", "does not start with a number"},
      {"5 ", "\" \" is not a unit"},
      {"5 s", "\" s\" is not a unit"},
      {"5S", "\"S\" is not a unit"},
      {"5ss", "\"ss\" is not a unit"},
      {"5mss", "\"mss\" is not a unit"},
      {"5w", "\"w\" is not a unit"},
      {"5us", "\"us\" is not a unit"},
      {"5m30s", "\"m30s\" is not a unit"},
      {"1:30", "\":30\" is not a unit"},
      {"1,5", "\",5\" is not a unit"},
      {"1e", "\"e\" is not a unit"},
      {"1.2.3", "\".3\" is not a unit"},
      {"1e400", "out of range", ERANGE},
      {"1e308d", "out of range", ERANGE},
      {"1e-400", "out of range", ERANGE},
      {std::string("5\0", 2), "\"\\x00\" is not a unit"},
      {"\xd9\xa5", "does not start with a number"},
      {std::string(100'000, 'm'), "does not start with a number"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    std::string reason = "accepted";
    try {
      (void)parse_duration(row.text);
    } catch (const Error& error) {
      reason = error.what();
      CHECK(error.errnum() == row.errnum);
    }
    CHECK_MESSAGE(reason.find(row.reason) != std::string::npos, reason);
    CHECK(reason.find(" is not a duration: ") != std::string::npos);
    CHECK(reason.size() < 700);
  }
}

TEST_CASE("weeks are read where they are asked for, and each error lists all units that are read there") {
  CHECK(parse_duration("2w", DurationUnits::with_weeks) == Seconds(1209600));
  const auto refusal = [](const char* given, DurationUnits units) -> std::string {
    try {
      (void)parse_duration(given, units);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(refusal("5y", DurationUnits::standard) ==
        "\"5y\" is not a duration: \"y\" is not a unit (ms, s, m, h, d)");
  CHECK(refusal("5y", DurationUnits::with_weeks) ==
        "\"5y\" is not a duration: \"y\" is not a unit (ms, s, m, h, d, w)");
  CHECK(list_of_units(DurationUnits::with_weeks) == "ms, s, m, h, d, w");
  for (const char* unit : {"ms", "s", "m", "h", "d", "w"})
    CHECK_NOTHROW((void)parse_duration(std::string("1") + unit, DurationUnits::with_weeks));
  CHECK(seconds_of_unit("ms") == 0.001);
  CHECK(seconds_of_unit("hours") == 3600);
  CHECK(seconds_of_unit("week") == 604800);
  for (const char* other : {"", "y", "hs", "S", "weekss"}) CHECK_FALSE(seconds_of_unit(other));
  CHECK(format_duration(Seconds(604800)) == "7d");
}

TEST_CASE("durations are written in the shortest text") {
  struct Row {
    double seconds;
    const char* text;
  };
  const std::vector<Row> rows = {
      {0, "0s"},     {0.002, "2ms"}, {0.1, "0.1s"}, {0.0011, "1.1ms"},
      {1, "1s"},     {30, "30s"},    {90, "90s"},   {300, "5m"},
      {3600, "1h"},  {4320, "72m"},  {86400, "1d"}, {432000, "5d"},
      {5400, "90m"}, {100, "100s"},  {1.5, "1.5s"}, {std::numeric_limits<double>::infinity(), "inf"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.seconds);
    CHECK(format_duration(Seconds(row.seconds)) == row.text);
  }
  CHECK_THROWS_AS((void)format_duration(Seconds(-1)), Error);
  CHECK_THROWS_AS((void)format_duration(Seconds(std::nan(""))), Error);
}

TEST_CASE("a point in time is shown in UTC, with the second that has begun") {
  CHECK(format_utc(wall_time(0)) == "1970-01-01T00:00:00Z");
  CHECK(format_utc(wall_time(951782399.9)) == "2000-02-28T23:59:59Z");
  CHECK(format_utc(wall_time(-0.5)) == "1969-12-31T23:59:59Z");
  CHECK(format_utc(wall_time(1e300)) == "1e+300");
}

TEST_CASE("what is written reads back as the same number") {
  std::mt19937_64 random(41);
  for (int i = 0; i < 20'000; ++i) {
    double seconds = std::abs(std::uniform_real_distribution<double>(0, 1)(random));
    seconds = std::ldexp(seconds, std::uniform_int_distribution<int>(-1000, 1000)(random));
    if (i % 3 == 0) seconds = std::floor(std::fmod(seconds, 1e9));
    if (i % 3 == 1) seconds = std::floor(std::fmod(seconds, 1e9)) / 1000;
    CAPTURE(seconds);
    CHECK(parse_duration(format_duration(Seconds(seconds))) == Seconds(seconds));
  }
  for (const double seconds :
       {std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min()}) {
    CAPTURE(seconds);
    CHECK(parse_duration(format_duration(Seconds(seconds))) == Seconds(seconds));
  }
}

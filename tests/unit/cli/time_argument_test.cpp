// Times on a command line. The reference for calendars and zones is date(1) of the system.
#include "cli/commands/time_argument.hpp"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/views/listing.hpp"
#include "core/error.hpp"
#include "core/time.hpp"

namespace resourced::cli::commands {

using views::UsageError;

namespace {

constexpr double now = 1'700'000'000.25;

double read(std::string_view text, Unsigned direction = Unsigned::ahead) {
  return to_number(parse_time(text, wall_time(now), direction));
}

/// The seconds since the epoch that date(1) prints for a text, which the shell expands.
double by_date(const std::string& text, const std::string& more = {}) {
  const std::string command = fmt::format("date -d \"{}{}\" +%s", text, more);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  long long seconds = 0;
  REQUIRE(std::fscanf(pipe.get(), "%lld", &seconds) == 1);
  return static_cast<double>(seconds);
}

/// Sets the local time zone; the destructor restores it.
class Zone {
 public:
  explicit Zone(const char* name) {
    if (const char* before = std::getenv("TZ")) before_ = before;
    ::setenv("TZ", name, 1);
    ::tzset();
  }
  ~Zone() {
    before_.empty() ? ::unsetenv("TZ") : ::setenv("TZ", before_.c_str(), 1);
    ::tzset();
  }
  Zone(const Zone&) = delete;
  Zone& operator=(const Zone&) = delete;
  Zone(Zone&&) = delete;
  Zone& operator=(Zone&&) = delete;

 private:
  std::string before_;
};

}  // namespace

TEST_CASE("seconds since the epoch, and durations from now in the direction that the option has") {
  CHECK(read("1893456000.5") == 1893456000.5);
  CHECK(read("0") == 0);
  CHECK(read("90") == 90);
  CHECK(read("+90") == now + 90);
  CHECK(read("-90") == now - 90);
  CHECK(read("2h") == now + 7200);
  CHECK(read("2h", Unsigned::back) == now - 7200);
  CHECK(read("+1.5m", Unsigned::back) == now + 90);
  CHECK(read("-1d", Unsigned::ahead) == now - 86400);
}

TEST_CASE("a duration may have several units, weeks, names of units, or the columns of Slurm") {
  const std::vector<std::pair<const char*, double>> rows{
      {"1h30m", 5400},        {"2d12h", 216000},         {"1w", 604800},      {"1.5w", 907200},
      {"1hour", 3600},        {"2hours30minutes", 9000}, {"90seconds", 90},   {"1-12", 129600},
      {"1-12:00:00", 129600}, {"0-00:01:05", 65},        {"1-12:30", 131400}, {"10days", 864000}};
  for (const auto& [text, seconds] : rows) {
    CAPTURE(text);
    CHECK(to_number(parse_span(text)) == seconds);
    CHECK(read(text) == now + seconds);
    CHECK(read(text, Unsigned::back) == now - seconds);
    CHECK(read(fmt::format("+{}", text), Unsigned::back) == now + seconds);
    CHECK(read(fmt::format("now-{}", text)) == now - seconds);
  }
  for (const char* text :
       {"1h30", "h", "1y", "1hs", "1h-30m", "-1-12", "1-24", "1-12:60", "1000-00", "1-1:00", "1-12:00:00:00"})
    CHECK_THROWS_AS((void)parse_span(text), Error);
}

TEST_CASE("an error lists every unit that is read") {
  for (const char* text : {"5y", "1h30", "1h30y", "1:30"})
    CHECK_THROWS_WITH_AS((void)parse_span(text), doctest::Contains("(ms, s, m, h, d, w)"), Error);
  for (const char* text : {"5y", "+5y", "now+5y"})
    CHECK_THROWS_WITH_AS((void)read(text), doctest::Contains("with the units ms, s, m, h, d, w"), UsageError);
  CHECK(to_number(parse_span("1s500ms")) == 1.5);
}

TEST_CASE(
    "hours, minutes and seconds are a duration where a duration is meant, and a time of day otherwise") {
  const Zone local("UTC");
  for (const auto& [text, seconds] : std::vector<std::pair<const char*, double>>{
           {"01:30:00", 5400}, {"0:00:05", 5}, {"36:00:00", 129600}, {"999:59:59", 3599999}}) {
    CAPTURE(text);
    CHECK(to_number(parse_span(text)) == seconds);
    CHECK(read(fmt::format("+{}", text)) == now + seconds);
    CHECK(read(fmt::format("-{}", text)) == now - seconds);
    CHECK(read(fmt::format("now+{}", text)) == now + seconds);
  }
  // 2023-11-14T22:13:20.25Z is now.
  CHECK(read("23:00:00") == 1700002800);
  CHECK_THROWS_AS((void)read("36:00:00"), UsageError);
  for (const char* text :
       {"30:00", "1:30", "1000:00:00", ":00:00", "1:60:00", "1:00:60", "1:0:0", "1:00:00:00"}) {
    CAPTURE(text);
    CHECK_THROWS_AS((void)parse_span(text), Error);
    CHECK_THROWS_AS((void)read(fmt::format("+{}", text)), UsageError);
  }
}

TEST_CASE("times as Slurm takes them are local, and a time of day is the next or the last one") {
  CHECK(read("now") == now);
  CHECK(read("now+60") == now + 60);
  CHECK(read("now+1hour") == now + 3600);
  CHECK(read("now-2weeks") == now - 1209600);
  CHECK(read("NOW+2Days") == now + 172800);
  for (const char* text : {"today 25:00", "today tomorrow", "tomorrow 12", "18:00tomorrow", "tomorrow  "}) {
    CAPTURE(text);
    CHECK_THROWS_AS((void)read(text), UsageError);
  }
  for (const char* zone : {"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"}) {
    CAPTURE(zone);
    const Zone local(zone);
    const std::string midnight = fmt::format("$(date -d @{} +%F)", static_cast<long long>(now));
    CHECK(read("today") == by_date(midnight, ""));
    CHECK(read("tomorrow") == by_date(midnight, " 1 day"));
    for (const std::string time : {"00:00", "12:00", "18:30", "23:59:59", "04:13:20"}) {
      CAPTURE(time);
      const double same_day = by_date(midnight, " " + time);
      const double ahead = same_day < now ? by_date(midnight, " " + time + " 1 day") : same_day;
      const double back = same_day > now ? by_date(midnight, " " + time + " 1 day ago") : same_day;
      CHECK(read(time) == ahead);
      for (const char* of_day : {"today {}", "{} today", "Today {}"})
        CHECK(read(fmt::format(fmt::runtime(of_day), time)) == same_day);
      for (const char* of_day : {"tomorrow {}", "{} tomorrow"})
        CHECK(read(fmt::format(fmt::runtime(of_day), time), Unsigned::back) ==
              by_date(midnight, " " + time + " 1 day"));
      CHECK(read(time, Unsigned::back) == back);
    }
    CHECK(read("8:30") == read("08:30"));
    CHECK(read("noon") == read("12:00"));
    CHECK(read("Noon tomorrow") == read("tomorrow 12:00"));
    CHECK(read("midnight", Unsigned::back) == read("00:00", Unsigned::back));
  }
}

TEST_CASE("dates mean what date(1) says, in local time or in their zone") {
  for (const char* zone : {"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"}) {
    const Zone local(zone);
    for (const char* text : {"2026-11-22", "2026-11-22T18:30", "2026-11-22 18:30", "2026-07-01T00:00:59",
                             "2024-02-29", "2026-11-22T18:30Z", "2026-11-22T18:30:05+01:00",
                             "2026-11-22T18:30:05-0530", "2026-01-01T00:00+14"}) {
      CAPTURE(zone);
      CAPTURE(text);
      CHECK(read(text) == by_date(text));
    }
    CHECK(read("2026-11-22T18:30:05.25Z") == by_date("2026-11-22T18:30:05Z") + 0.25);
  }
}

TEST_CASE("a date to the second is told from others") {
  for (const char* text :
       {"2026-11-22T18:30:05", "2026-11-22 18:30:05", "2026-11-22T18:30:05Z", "2026-11-22T18:30:05+01:00"})
    CHECK(is_date_in_seconds(text));
  for (const char* text : {"2026-11-22T18:30:05.5", "2026-11-22T18:30", "2026-11-22T18:30+01:00",
                           "2026-11-22", "1700000000", "2h"})
    CHECK_FALSE(is_date_in_seconds(text));
}

TEST_CASE("what is no time is refused, and shown") {
  for (const char* text : {"",
                           "x",
                           "+",
                           "-",
                           "+x",
                           "--1h",
                           "-0:30",
                           "1--0",
                           "+0:-0:-0",
                           "1e999",
                           "nan",
                           "inf",
                           "+inf",
                           "-inf",
                           "-1e10",
                           "-60y",
                           "2026-13-01",
                           "2026-02-29",
                           "2026-04-31",
                           "2026-11-22T",
                           "2026-11-22T24:00",
                           "2026-11-22T18",
                           "2026-11-22T18:60",
                           "2026-11-22T18:30:60",
                           "2026-11-22T18:30x",
                           "2026-11-22T18:30+1",
                           "2026-11-22T18:30+01:",
                           "2026-1-1",
                           "2026-11-22T18:30+01:00 ",
                           "2026-11-22Z0",
                           "24:00",
                           "18:60",
                           "8:0",
                           "18:30x",
                           "now+",
                           "now+inf",
                           "nowhere",
                           "yesterday",
                           "1969-12-31",
                           "0x10",
                           "2026-11-22T18:30:05.Z"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(static_cast<void>(parse_time(text, wall_time(now), Unsigned::ahead)),
                         doctest::Contains(fmt::format("bad time \"{}\"", text).c_str()), UsageError);
  }
}

}  // namespace resourced::cli::commands

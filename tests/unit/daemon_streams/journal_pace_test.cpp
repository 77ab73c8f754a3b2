// The share of the journal: unlimited while other clients are idle, otherwise a share of the time and of the
// bytes.
#include "daemon/streams/journal_pace.hpp"

#include <doctest/doctest.h>

namespace resourced::daemon::test {
namespace {

constexpr double rate = streams::JournalPace::rate;
constexpr double share = streams::JournalPace::share;
constexpr Seconds saved = streams::JournalPace::saved;
constexpr Seconds calm = streams::JournalPace::calm;

constexpr std::size_t bytes_in(Seconds time) { return static_cast<std::size_t>(rate * time.count()); }

TEST_CASE("without other clients the journal never waits") {
  streams::JournalPace pace;
  for (int i = 0; i < 10; ++i) {
    pace.spent(steady_time(5), Seconds(1), bytes_in(Seconds(100)));
    CHECK(pace.pause(steady_time(5)) == Seconds(0));
  }
}

TEST_CASE("while others are served, bytes beyond what is saved up are waited for") {
  streams::JournalPace pace;
  pace.served_another(steady_time(10));
  pace.spent(steady_time(10), Seconds(0), bytes_in(saved));
  CHECK(pace.pause(steady_time(10)) == Seconds(0));
  pace.spent(steady_time(10), Seconds(0), bytes_in(Seconds(0.02)));
  CHECK(pace.pause(steady_time(10)).count() == doctest::Approx(0.02));
  CHECK(pace.pause(steady_time(10.015)).count() == doctest::Approx(0.005));
  CHECK(pace.pause(steady_time(10.021)) == Seconds(0));
}

TEST_CASE("the loop's time is waited for in the same way") {
  streams::JournalPace pace;
  pace.served_another(steady_time(10));
  pace.spent(steady_time(10), share * (saved + Seconds(0.03)), 0);
  CHECK(pace.pause(steady_time(10)).count() == doctest::Approx(0.03));
  CHECK(pace.pause(steady_time(10.031)) == Seconds(0));
}

TEST_CASE("the longer of the two waits counts") {
  streams::JournalPace pace;
  pace.served_another(steady_time(10));
  pace.spent(steady_time(10), share * (saved + Seconds(0.03)), bytes_in(saved + Seconds(0.05)));
  CHECK(pace.pause(steady_time(10)).count() == doctest::Approx(0.05));
}

TEST_CASE("the saved allowance is bounded") {
  streams::JournalPace pace;
  pace.served_another(steady_time(10));
  CHECK(pace.pause(steady_time(10)) == Seconds(0));
  pace.served_another(steady_time(1000));
  pace.spent(steady_time(1000), Seconds(0), bytes_in(saved + Seconds(0.02)));
  CHECK(pace.pause(steady_time(1000)).count() == doctest::Approx(0.02));
}

TEST_CASE("a debt is forgiven when the others have gone quiet") {
  streams::JournalPace pace;
  pace.served_another(steady_time(10));
  pace.spent(steady_time(10), Seconds(0), bytes_in(Seconds(60)));
  CHECK(pace.pause(steady_time(10) + calm * 0.9) > Seconds(0));
  CHECK(pace.pause(steady_time(10) + calm * 1.1) == Seconds(0));
  pace.served_another(steady_time(20));
  CHECK(pace.pause(steady_time(20)) > Seconds(0));
}

TEST_CASE("in the long run the journal has its share and no more") {
  constexpr Seconds slice{100e-6};
  constexpr std::size_t slice_bytes = 256 << 10;
  constexpr Seconds run{5};
  streams::JournalPace pace;
  SteadyTime now = steady_time(100);
  Seconds time{};
  double bytes = 0;
  while (now < steady_time(100) + run) {
    pace.served_another(now);
    now += pace.pause(now) + slice;
    pace.spent(now, slice, slice_bytes);
    time += slice;
    bytes += slice_bytes;
  }
  CHECK(bytes <= rate * run.count() * 1.01);
  CHECK(bytes >= rate * run.count() * 0.95);
  CHECK(time <= share * run * 1.01);
}

}  // namespace
}  // namespace resourced::daemon::test

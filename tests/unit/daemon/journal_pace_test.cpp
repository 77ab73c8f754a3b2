// How much the journal may take: all where nobody else wants anything, and a share of time and bytes
// otherwise.
#include "daemon/streams/journal_pace.hpp"

#include <doctest/doctest.h>

namespace resourced::daemon::test {
namespace {

constexpr double rate = streams::JournalPace::rate;
constexpr double share = streams::JournalPace::share;
constexpr double saved = streams::JournalPace::saved;
constexpr double calm = streams::JournalPace::calm;

constexpr std::size_t bytes_in(double seconds) { return static_cast<std::size_t>(rate * seconds); }

TEST_CASE("nobody else is there: the journal never waits") {
  streams::JournalPace pace;
  for (int i = 0; i < 10; ++i) {
    pace.spent(5, 1, bytes_in(100));
    CHECK(pace.pause(5) == 0);
  }
}

TEST_CASE("while others are served, bytes beyond what is saved up are waited for") {
  streams::JournalPace pace;
  pace.served_another(10);
  pace.spent(10, 0, bytes_in(saved));
  CHECK(pace.pause(10) == 0);
  pace.spent(10, 0, bytes_in(0.02));
  CHECK(pace.pause(10) == doctest::Approx(0.02));
  CHECK(pace.pause(10.015) == doctest::Approx(0.005));
  CHECK(pace.pause(10.021) == 0);
}

TEST_CASE("the loop's time is waited for in the same way") {
  streams::JournalPace pace;
  pace.served_another(10);
  pace.spent(10, share * (saved + 0.03), 0);
  CHECK(pace.pause(10) == doctest::Approx(0.03));
  CHECK(pace.pause(10.031) == 0);
}

TEST_CASE("the longer of the two waits counts") {
  streams::JournalPace pace;
  pace.served_another(10);
  pace.spent(10, share * (saved + 0.03), bytes_in(saved + 0.05));
  CHECK(pace.pause(10) == doctest::Approx(0.05));
}

TEST_CASE("what is saved up does not grow for ever") {
  streams::JournalPace pace;
  pace.served_another(10);
  CHECK(pace.pause(10) == 0);
  pace.served_another(1000);
  pace.spent(1000, 0, bytes_in(saved + 0.02));
  CHECK(pace.pause(1000) == doctest::Approx(0.02));
}

TEST_CASE("a debt is forgiven when the others have gone quiet") {
  streams::JournalPace pace;
  pace.served_another(10);
  pace.spent(10, 0, bytes_in(60));
  CHECK(pace.pause(10 + calm * 0.9) > 0);
  CHECK(pace.pause(10 + calm * 1.1) == 0);
  pace.served_another(20);
  CHECK(pace.pause(20) > 0);
}

TEST_CASE("in the long run the journal has its share and no more") {
  constexpr double slice = 100e-6;
  constexpr std::size_t slice_bytes = 256 << 10;
  constexpr double seconds = 5;
  streams::JournalPace pace;
  double now = 100;
  double time = 0;
  double bytes = 0;
  while (now < 100 + seconds) {
    pace.served_another(now);
    now += pace.pause(now) + slice;
    pace.spent(now, slice, slice_bytes);
    time += slice;
    bytes += slice_bytes;
  }
  CHECK(bytes <= rate * seconds * 1.01);
  CHECK(bytes >= rate * seconds * 0.95);
  CHECK(time <= share * seconds * 1.01);
}

}  // namespace
}  // namespace resourced::daemon::test

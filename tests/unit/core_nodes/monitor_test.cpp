// Agents that connect, end and fall silent: the resulting events of the monitor and their times.
#include "core/nodes/monitor.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace resourced::test {

using text::IdSet;

namespace {

std::string text_of(const std::optional<nodes::MonitorBatch>& batch) {
  if (!batch) return "";
  std::string text;
  const auto add = [&](const char* name, const IdSet& ranks) {
    if (!ranks.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, ranks.encode());
  };
  add("online", batch->online);
  add("offline", batch->offline);
  add("torpid", batch->torpid);
  add("lively", batch->lively);
  add("flapping", batch->flapping);
  add("lost", batch->lost);
  return text;
}

// Settings with simple times: each batch follows one second after its cause.
nodes::MonitorSettings settings() {
  nodes::MonitorSettings settings;
  settings.torpid_after = Seconds(30);
  settings.offline_after = Seconds(100);
  settings.grace = Seconds(10);
  settings.coalesce = Seconds(1);
  settings.flap_count = 2;
  settings.flap_window = Seconds(500);
  return settings;
}

struct Step {
  double time;
  char what;  // h(ello), b(eat), g(one), e(nd), or a space: only time passes
  IdSet::Id rank;
};

// Plays steps with the timer of the monitor. Returns each batch after its time.
std::string play(nodes::Monitor& monitor, const std::vector<Step>& steps) {
  std::string heard;
  const auto tick = [&](SteadyTime now) {
    if (const std::string batch = text_of(monitor.tick(now)); !batch.empty()) {
      heard += fmt::format("{}{}: {}", heard.empty() ? "" : "; ", to_number(now), batch);
    }
  };
  for (const Step& step : steps) {
    const SteadyTime time = steady_time(step.time);
    for (auto next = monitor.next_deadline(); next && *next <= time; next = monitor.next_deadline()) {
      tick(*next);
    }
    if (step.what == 'h') monitor.hello(step.rank, time);
    if (step.what == 'b') monitor.beat(step.rank, time);
    if (step.what == 'g') monitor.gone(step.rank, time);
    if (step.what == 'e') monitor.goodbye(step.rank, time);
    tick(time);
  }
  return heard;
}

TEST_CASE("a target is what its agent shows") {
  const struct {
    const char* name;
    std::vector<Step> steps;
    std::string expected;
  } cases[] = {
      {"offline until hello", {{1, ' ', 0}, {1000, ' ', 0}}, ""},
      {"a beat without hello counts for nothing", {{1, 'b', 0}, {1000, ' ', 0}}, ""},
      {"gone and goodbye without hello neither", {{1, 'g', 0}, {1, 'e', 0}, {1000, ' ', 0}}, ""},
      {"hello: online", {{1, 'h', 0}, {20, ' ', 0}}, "2: online=0"},
      {"beats keep it lively",
       {{1, 'h', 0}, {25, 'b', 0}, {50, 'b', 0}, {75, 'b', 0}, {104, ' ', 0}},
       "2: online=0"},
      {"silent: torpid, then offline",
       {{1, 'h', 0}, {200, ' ', 0}},
       "2: online=0; 32: torpid=0; 102: offline=0"},
      {"torpid and back",
       {{1, 'h', 0}, {40, 'b', 0}, {60, ' ', 0}},
       "2: online=0; 32: torpid=0; 41: lively=0"},
      {"silent, offline and back with a beat, as the connection is there still",
       {{1, 'h', 0}, {150, 'b', 0}, {160, ' ', 0}},
       "2: online=0; 32: torpid=0; 102: offline=0; 151: online=0"},
      {"gone for grace: offline", {{1, 'h', 0}, {5, 'g', 0}, {50, ' ', 0}}, "2: online=0; 16: offline=0"},
      {"back within grace: nothing has happened",
       {{1, 'h', 0}, {5, 'g', 0}, {14, 'h', 0}, {40, ' ', 0}},
       "2: online=0"},
      {"back after grace",
       {{1, 'h', 0}, {5, 'g', 0}, {20, 'h', 0}, {40, ' ', 0}},
       "2: online=0; 16: offline=0; 21: online=0"},
      {"a beat on a connection that is gone counts for nothing",
       {{1, 'h', 0}, {5, 'g', 0}, {14, 'b', 0}, {40, ' ', 0}},
       "2: online=0; 16: offline=0"},
      {"goodbye: offline at once", {{1, 'h', 0}, {5, 'e', 0}, {50, ' ', 0}}, "2: online=0; 6: offline=0"},
      {"goodbye while gone",
       {{1, 'h', 0}, {5, 'g', 0}, {7, 'e', 0}, {50, ' ', 0}},
       "2: online=0; 8: offline=0"},
      {"torpid, then gone",
       {{1, 'h', 0}, {35, 'g', 0}, {80, ' ', 0}},
       "2: online=0; 32: torpid=0; 46: offline=0"},
      {"a restart of the agent within one window is nothing",
       {{1, 'h', 0}, {5, 'e', 0}, {5.5, 'h', 0}, {20, ' ', 0}},
       "2: online=0"},
      {"hello and goodbye within one window is nothing", {{1, 'h', 0}, {1.5, 'e', 0}, {20, ' ', 0}}, ""},
      {"many at once are one batch",
       {{1, 'h', 0}, {1.2, 'h', 7}, {1.9, 'h', 1}, {2.1, 'h', 2}, {10, ' ', 0}},
       "2: online=0-1,7; 3.1: online=2"},
  };
  for (const auto& row : cases) {
    CAPTURE(row.name);
    nodes::Monitor monitor(settings());
    CHECK(play(monitor, row.steps) == row.expected);
  }
}

TEST_CASE("a target that is kept is online until its agent says hello, or until the end of the time") {
  const struct {
    const char* name;
    std::vector<Step> steps;
    std::string expected;
  } cases[] = {
      {"not torpid before that", {{200, ' ', 0}}, "61: offline=0-1"},
      {"nothing is told of an agent that connects in time", {{5, 'h', 0}, {30, ' ', 0}}, ""},
      {"from then on it is like any other",
       {{5, 'h', 0}, {5, 'h', 1}, {20, 'g', 0}, {20, 'h', 2}, {20, 'b', 1}, {45, 'b', 2}, {45, ' ', 0}},
       "21: online=2; 31: offline=0"},
      {"one that is back just after the time", {{60.5, 'h', 0}, {80, ' ', 0}}, "61: offline=1"},
      {"an agent that connects and ends", {{5, 'h', 0}, {6, 'e', 0}, {30, ' ', 0}}, "7: offline=0"},
      {"an end without hello, as of targets that are forced down",
       {{6, 'e', 0}, {30, ' ', 0}},
       "7: offline=0"},
      {"the loss of another connection changes nothing", {{6, 'g', 0}, {30, ' ', 0}}, ""},
  };
  for (const auto& row : cases) {
    CAPTURE(row.name);
    nodes::Monitor monitor(settings());
    monitor.keep(IdSet::range(0, 1), steady_time(0), steady_time(60));
    CHECK(monitor.is_silent(0, steady_time(1)));
    CHECK(play(monitor, row.steps) == row.expected);
  }
}

TEST_CASE("a node that flaps is to be drained, once") {
  nodes::Monitor monitor(settings());
  const auto toggle = [](double time) {
    return std::vector<Step>{{time, 'h', 3}, {time + 5, 'e', 3}, {time + 10, ' ', 3}};
  };
  CHECK(play(monitor, toggle(10)) == "11: online=3; 16: offline=3");
  CHECK(play(monitor, toggle(30)) == "31: online=3; 36: offline=3");
  CHECK(play(monitor, toggle(50)) == "51: online=3; 56: offline=3 flapping=3");
  CHECK(play(monitor, toggle(70)) == "71: online=3; 76: offline=3");

  // To flap again, a node must go offline three times within the window: at 580 the time 75 is too old.
  CHECK(play(monitor, toggle(560)) == "561: online=3; 566: offline=3");
  CHECK(play(monitor, toggle(580)) == "581: online=3; 586: offline=3");
  CHECK(play(monitor, toggle(600)) == "601: online=3; 606: offline=3 flapping=3");
}

TEST_CASE("flaps within one window count, though nobody else hears of them") {
  nodes::Monitor monitor(settings());
  monitor.hello(0, steady_time(1));
  for (const double time : {1.1, 1.2, 1.3}) {
    monitor.goodbye(0, steady_time(time));
    monitor.hello(0, steady_time(time));
  }
  const auto batch = monitor.tick(steady_time(2));
  CHECK(text_of(batch) == "online=0 flapping=0");
  REQUIRE(batch);
  CHECK(batch->flapping_reason == "flapping: offline more than 2 times within 500s");
}

TEST_CASE("a flap count of 0 leaves flapping alone") {
  nodes::MonitorSettings quiet = settings();
  quiet.flap_count = 0;
  nodes::Monitor monitor(quiet);
  for (double time = 1; time < 100; time += 4) {
    CHECK(play(monitor, {{time, 'h', 0}, {time + 2, 'e', 0}}).find("flapping") == std::string::npos);
  }
}

TEST_CASE("what stays away is lost, where that matters") {
  nodes::MonitorSettings losing = settings();
  losing.lost_after = Seconds(200);
  nodes::Monitor monitor(losing);
  SUBCASE("after it went offline") {
    CHECK(play(monitor, {{1, 'h', 0}, {5, 'e', 0}, {1000, ' ', 0}}) ==
          "2: online=0; 6: offline=0; 206: lost=0");
    CHECK(monitor.size() == 0);
    CHECK_FALSE(monitor.next_deadline());
  }
  SUBCASE("not if it comes back") {
    CHECK(play(monitor, {{1, 'h', 0}, {5, 'e', 0}, {204, 'h', 0}, {220, ' ', 0}}) ==
          "2: online=0; 6: offline=0; 205: online=0");
  }
  SUBCASE("not if it comes back in the last moment") {
    CHECK(play(monitor, {{1, 'h', 0}, {5, 'e', 0}, {205.5, 'h', 0}, {220, ' ', 0}}) ==
          "2: online=0; 6: offline=0; 206: online=0");
  }
  SUBCASE("if it is expected and never comes") {
    monitor.expect(IdSet{0, 1}, steady_time(10));
    CHECK(play(monitor, {{100, 'h', 1}, {120, 'b', 1}, {215, ' ', 0}}) ==
          "101: online=1; 151: torpid=1; 211: lost=0");
  }
}

TEST_CASE("targets that are no more are forgotten, whatever state they are in") {
  nodes::Monitor monitor(settings());
  play(monitor,
       {{1, 'h', 0}, {1, 'h', 1}, {1, 'h', 2}, {1, 'h', 3}, {20, 'b', 0}, {30, 'g', 2}, {31, 'e', 3}});
  monitor.hello(4, steady_time(31));
  monitor.forget(IdSet::range(0, 9));
  CHECK(monitor.size() == 0);
  CHECK_FALSE(monitor.next_deadline());
  CHECK_FALSE(monitor.tick(steady_time(1000)));
  CHECK(play(monitor, {{1001, 'h', 0}, {1010, ' ', 0}}) == "1002: online=0");
}

TEST_CASE("new times hold for what is silent or gone already") {
  nodes::Monitor monitor(settings());
  CHECK(play(monitor, {{1, 'h', 0}, {1, 'h', 1}, {5, 'g', 1}, {6, ' ', 0}}) == "2: online=0-1");
  nodes::MonitorSettings other = settings();
  other.torpid_after = Seconds(8);
  other.grace = Seconds(2);
  other.coalesce = Seconds(0);
  monitor.configure(other);
  CHECK(play(monitor, {{20, ' ', 0}}) == "7: offline=1; 9: torpid=0");
  other.offline_after = forever;
  monitor.configure(other);
  CHECK_FALSE(monitor.next_deadline());
}

TEST_CASE("an offline time that is not the longer leaves torpid out") {
  nodes::MonitorSettings quick = settings();
  quick.offline_after = Seconds(30);
  nodes::Monitor monitor(quick);
  CHECK(play(monitor, {{1, 'h', 0}, {100, ' ', 0}}) == "2: online=0; 32: offline=0");
}

TEST_CASE("a timer that comes late finds what is due, and nothing twice") {
  nodes::Monitor monitor(settings());
  monitor.hello(0, steady_time(1));
  CHECK(text_of(monitor.tick(steady_time(500)))
            .empty());  // a target that was online and offline again is no change
  CHECK_FALSE(monitor.tick(steady_time(1000)));
}

TEST_CASE("a clock that goes back is taken to stand still") {
  nodes::Monitor monitor(settings());
  monitor.hello(0, steady_time(100));
  monitor.hello(1, steady_time(50));
  CHECK(text_of(monitor.tick(steady_time(101))) == "online=0-1");
  CHECK(monitor.next_deadline() == steady_time(130));
}

TEST_CASE("10,000 agents within a second make a handful of batches, and a million fit") {
  nodes::MonitorSettings often = settings();
  often.coalesce = Seconds(0.2);
  nodes::Monitor monitor(often);
  int batches = 0;
  IdSet online;
  for (IdSet::Id rank = 0; rank < 10000; ++rank) {
    const SteadyTime now = steady_time(1 + rank / 10000.0);
    monitor.hello(rank * 7919 % 10000, now);
    if (const auto batch = monitor.tick(now)) {
      ++batches;
      online |= batch->online;
    }
  }
  if (const auto batch = monitor.tick(steady_time(3))) {
    ++batches;
    online |= batch->online;
  }
  CHECK(batches <= 6);
  CHECK(online == IdSet::range(0, 9999));

  nodes::Monitor large(often);
  for (IdSet::Id rank = 0; rank < 1048576; ++rank) large.hello(rank, steady_time(1));
  CHECK(text_of(large.tick(steady_time(2))) == "online=0-1048575");
  CHECK(text_of(large.tick(steady_time(31.5))).empty());
  CHECK(text_of(large.tick(steady_time(32))) == "torpid=0-1048575");
}

}  // namespace
}  // namespace resourced::test

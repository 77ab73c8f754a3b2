// The counts of UsageTally in small histories whose sums are counted by hand. Random histories are in
// tests/unit/daemon_service/usage_test.cpp.
#include "core/module/usage.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "world.hpp"

using namespace resourced::module;

namespace resourced::test {

using text::IdSet;

namespace {

constexpr Micros second = 1'000'000;

// Two targets that are online from the time 100 on
State two_targets() {
  State state;
  state.defined = true;
  state.inventory = state.configured = *make_inventory("n[0-1]", {{"big", IdSet{1}}});
  state.targets.online = state.available = {0, 1};
  return state;
}

// The sums of two targets since the time 100, and the state that they follow
class Counted {
 public:
  explicit Counted(double from = 100) : tally_(wall_time(from), {true, true}) {}

  void add(Event event) {
    (void)tally_.add(state_, event);
    (void)apply(state_, event);
  }
  void finish(double time) {
    tally_.finish(state_, wall_time(time));
    (void)tally_.take(
        std::numeric_limits<Month>::max(), 1'000'000,
        [this](Month month, std::string_view kind, const std::string& name, const Cause& cause,
               const Usage& usage) {
          Usage& sum = sums_[{month, std::string(kind), name, std::string(cause.kind), cause.reason}];
          for (std::size_t i = 0; i < usage.size(); ++i) sum.at(i) += usage.at(i);
        });
  }
  // The sum of a group, over all causes and months, or of one
  Usage of(const std::string& kind, const std::string& name = "", const std::optional<Cause>& cause = {},
           const std::optional<Month>& month = {}) const {
    Usage all{};
    for (const auto& [key, usage] : sums_) {
      const auto& [at, by, group, cause_kind, reason] = key;
      if (by != kind || group != name || (month && at != *month)) continue;
      if (cause && (cause_kind != cause->kind || reason != cause->reason)) continue;
      for (std::size_t i = 0; i < usage.size(); ++i) all.at(i) += usage.at(i);
    }
    return all;
  }
  std::size_t count(const std::string& kind) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(sums_, [&](const auto& entry) { return std::get<1>(entry.first) == kind; }));
  }

 private:
  State state_ = two_targets();
  UsageTally tally_;
  std::map<std::tuple<Month, std::string, std::string, std::string, std::string>, Usage> sums_;
};

// Positions in Usage
enum : std::size_t { known, up, allocated, drained, offline, excluded, unavailable, outages };

Event at(double time, EventBody body) { return {wall_time(time), std::move(body)}; }

Event drain(double time, IdSet ranks, std::string reason) {
  DrainEvent event;
  event.ranks = std::move(ranks);
  event.reason = std::move(reason);
  event.overwrite = Overwrite::reason;
  return at(time, std::move(event));
}

Event undrain(double time, IdSet ranks) {
  UndrainEvent event;
  event.ranks = std::move(ranks);
  return at(time, std::move(event));
}

TEST_CASE("times by state, by host and by property, and causes with their outages") {
  Counted counted;
  counted.add(drain(110, {1}, "fan"));
  counted.add(at(120, OfflineEvent{{0, 1}}));
  counted.add(drain(130, {1}, "disk"));
  counted.add(undrain(150, {1}));
  counted.add(at(160, OnlineEvent{{1}}));
  counted.finish(200);
  const Usage all = counted.of("total");
  CHECK(all[known] == 200 * second);
  CHECK(all[up] == (20 + 10 + 40) * second);
  CHECK(all[drained] == 40 * second);
  CHECK(all[offline] == (80 + 40) * second);
  CHECK(all[unavailable] == (50 + 80) * second);
  CHECK(all[outages] == 2);
  CHECK(counted.of("host", "n0")[outages] == 1);
  CHECK(counted.of("host", "n0")[up] == 20 * second);
  CHECK(counted.of("property", "big") == counted.of("host", "n1"));
  const auto of_cause = [&](const Cause& cause) { return counted.of("host", "n1", cause); };
  CHECK(of_cause({"drain", "fan"})[known] == 20 * second);
  CHECK(of_cause({"drain", "fan"})[offline] == 10 * second);
  CHECK(of_cause({"drain", "disk"})[known] == 20 * second);
  CHECK(of_cause({"offline"})[known] == 10 * second);
  // An outage is counted for the reason with which it began.
  CHECK(of_cause({"drain", "fan"})[outages] == 1);
  CHECK(of_cause({"drain", "disk"})[outages] == 0);
}

TEST_CASE("a clock that is set after years leaves months that are missing, and nothing else of them") {
  Counted counted;
  constexpr double in_2026 = 1.8e9;
  counted.add(drain(in_2026, {1}, "fan"));
  counted.finish(in_2026 + 10);
  CHECK(counted.count("missing") > 600);
  CHECK(counted.of("missing")[known] == to_micros(wall_time(in_2026)) - 100 * second);
  CHECK(counted.of("total")[known] == 2 * 10 * second);
  CHECK(counted.of("host", "n1")[drained] == 10 * second);
}

TEST_CASE("changes at one time are one change") {
  Counted counted;
  // A target that is down and up again at once has no outage; one that is up and down again at once has a
  // single one.
  counted.add(drain(110, {0}, "a"));
  counted.add(undrain(110, {0}));
  counted.add(drain(120, {1}, "b"));
  counted.add(undrain(130, {1}));
  counted.add(drain(130, {1}, "c"));
  // If targets get several reasons at one time, the last one counts.
  counted.add(undrain(140, {1}));
  counted.add(drain(150, {1}, "d"));
  counted.add(drain(150, {1}, "e"));
  counted.finish(160);
  CHECK(counted.of("host", "n0")[outages] == 0);
  CHECK(counted.of("host", "n1")[outages] == 2);
  CHECK(counted.of("total", "", Cause{"drain", "b"})[outages] == 1);
  CHECK(counted.of("total", "", Cause{"drain", "e"})[outages] == 1);
  // A property that is removed at the time of the drain does not get the outage.
  Counted other;
  PropertyEvent update;
  update.removed = {{"big", {1}}};
  other.add(drain(110, {1}, "a"));
  other.add(at(110, update));
  other.finish(120);
  CHECK(other.of("property", "big")[known] == 10 * second);
  CHECK(other.of("property", "big")[outages] == 0);
}

TEST_CASE("a start begins no outage, although nodes are offline until their agents are back") {
  Counted counted;
  RestartEvent restart;
  restart.ranks = {0, 1};
  restart.nodelist = text::Hostlist::parse("n[0-1]");
  counted.add(at(110, restart));
  DefineEvent define;
  define.inventory = make_inventory("n[0-1]");
  define.exclude = {0};
  counted.add(at(110, define));
  counted.add(at(115, OnlineEvent{{0, 1}}));
  counted.add(at(120, OfflineEvent{{0, 1}}));
  counted.finish(130);
  CHECK(counted.of("total")[outages] == 1);
  CHECK(counted.of("host", "n0")[excluded] == 20 * second);
  CHECK(counted.of("host", "n0")[unavailable] == 0);
  CHECK(counted.of("host", "n0")[offline] == 15 * second);
  CHECK(counted.of("host", "n1")[unavailable] == 15 * second);
}

TEST_CASE("targets follow their hosts to other ranks") {
  Counted counted;
  counted.add(drain(110, {1}, "fan"));
  RestartEvent restart;
  restart.ranks = restart.online = {0, 1};
  restart.nodelist = text::Hostlist::parse("n1,n0");
  counted.add(at(120, restart));
  DefineEvent define;
  define.inventory = make_inventory("n1,n0");
  counted.add(at(120, define));
  counted.finish(130);
  CHECK(counted.of("host", "n1")[drained] == 20 * second);
  CHECK(counted.of("host", "n0")[drained] == 0);
}

TEST_CASE("months are those of the calendar, and a time of years without events is missing") {
  CHECK(month_name(month_of(0)) == "1970-01");
  CHECK(month_name(month_of(to_micros(wall_time(1709208000)))) == "2024-02");
  CHECK(begin_of(month_of(to_micros(wall_time(1709251199)))) == 1706745600 * second);
  CHECK(begin_of(month_of(to_micros(wall_time(1709251199))) + 1) == 1709251200 * second);
  // The count starts ten seconds before March; the next event comes more than two years later.
  Counted counted(1709251190);
  counted.add(drain(1709251195, {0}, "fan"));
  counted.add(undrain(1709251203, {0}));
  counted.add(drain(1709251203 + 1e8, {0}, "later"));
  counted.finish(1709251203 + 1e8 + 5);
  const Month february = month_of(1709208000 * second);
  CHECK(counted.of("total", "", {}, february)[drained] == 5 * second);
  CHECK(counted.of("total", "", {}, february)[outages] == 1);
  CHECK(counted.of("total", "", {}, february + 1)[drained] == 3 * second);
  CHECK(counted.of("total", "", {}, february + 1)[outages] == 0);
  CHECK(counted.of("total", "", Cause{"drain", "later"})[drained] == 5 * second);
  CHECK(counted.of("missing")[known] == 100'000'000 * second);
  CHECK(counted.of("total")[known] == 2 * (13 + 5) * second);
}

TEST_CASE("a host keeps fewer reasons apart than all hosts together") {
  Counted counted;
  constexpr int reasons = 40;
  for (int i = 0; i < reasons; ++i) {
    counted.add(drain(110 + 2 * i, {1}, fmt::format("run {}", i)));
    counted.add(undrain(111 + 2 * i, {1}));
  }
  counted.finish(300);
  CHECK(counted.count("total") == reasons + 1);
  CHECK(counted.count("host") == 2 + UsageTally::most_reasons_of_part + 1);
  CHECK(counted.of("host", "n1")[outages] == reasons);
  const Usage other = counted.of("host", "n1", Cause{"other"});
  CHECK(other[outages] == reasons - 16);
  CHECK(other[drained] == other[outages] * second);
}

TEST_CASE("long reasons are cut") {
  Counted counted;
  // The reason is cut before a character of two bytes that would not fit.
  counted.add(drain(110, {1}, std::string(199, 'x') + "\xc3\xa9" + std::string(5000, 'x')));
  counted.finish(111);
  CHECK(counted.of("total", "", Cause{"drain", std::string(199, 'x') + "..."})[drained] == second);
}

}  // namespace
}  // namespace resourced::test

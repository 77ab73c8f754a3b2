// The counts of UsageMeter in small histories whose sums are counted by hand. Random histories are in
// tests/unit/daemon_service/usage_test.cpp.
#include <algorithm>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/module/usage_meter.hpp"
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

UsageMeter meter_of_all() { return {two_targets(), wall_time(100), {true, true, false}}; }

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

UsageTable table_until(UsageMeter& meter, double time) {
  meter.finish(wall_time(time));
  return meter.take().begin()->second;
}

TEST_CASE("times by state, by host and by property, and causes with their outages") {
  UsageMeter meter = meter_of_all();
  (void)meter.add(drain(110, {1}, "fan"));
  (void)meter.add(at(120, OfflineEvent{{0, 1}}));
  (void)meter.add(drain(130, {1}, "disk"));
  (void)meter.add(undrain(150, {1}));
  (void)meter.add(at(160, OnlineEvent{{1}}));
  const UsageTable table = table_until(meter, 200);
  const Usage& all = table.all.all;
  CHECK(all.known == 200 * second);
  CHECK(all.up == (20 + 10 + 40) * second);
  CHECK(all.drained == 40 * second);
  CHECK(all.offline == (80 + 40) * second);
  CHECK(all.unavailable == (50 + 80) * second);
  CHECK(all.outages == 2);
  CHECK(table.hosts.at("n0").all.outages == 1);
  CHECK(table.hosts.at("n0").all.up == 20 * second);
  CHECK(table.properties.at("big").all == table.hosts.at("n1").all);
  const auto& causes = table.hosts.at("n1").causes;
  CHECK(causes.size() == 3);
  CHECK(causes.at({Cause::Kind::drain, "fan"}).known == 20 * second);
  CHECK(causes.at({Cause::Kind::drain, "fan"}).offline == 10 * second);
  CHECK(causes.at({Cause::Kind::drain, "disk"}).known == 20 * second);
  CHECK(causes.at({Cause::Kind::offline}).known == 10 * second);
  // An outage is counted for the reason with which it began.
  CHECK(causes.at({Cause::Kind::drain, "fan"}).outages == 1);
  CHECK(causes.at({Cause::Kind::drain, "disk"}).outages == 0);
}

TEST_CASE("a clock that is set after years leaves months that are missing, and nothing else of them") {
  UsageMeter meter(two_targets(), wall_time(100), {true, true, true});
  constexpr double in_2026 = 1.8e9;
  (void)meter.add(drain(in_2026, {1}, "fan"));
  meter.finish(wall_time(in_2026 + 10));
  const UsageMeter::Tables tables = meter.take();
  Micros missing = 0;
  for (const auto& [month, table] : tables) {
    missing += table.missing;
    if (month != tables.begin()->first && month != tables.rbegin()->first) CHECK(table.hosts.empty());
  }
  CHECK(tables.size() > 600);
  CHECK(missing == to_micros(wall_time(in_2026)) - 100 * second);
  CHECK(tables.rbegin()->second.hosts.at("n1").all.drained == 10 * second);
}

TEST_CASE("a host keeps fewer causes apart than all hosts together") {
  UsageMeter meter = meter_of_all();
  constexpr int reasons = 40;
  for (int i = 0; i < reasons; ++i) {
    (void)meter.add(drain(110 + 2 * i, {1}, fmt::format("run {}", i)));
    (void)meter.add(undrain(111 + 2 * i, {1}));
  }
  const UsageTable table = table_until(meter, 300);
  CHECK(table.all.causes.size() == reasons);
  const auto& of_host = table.hosts.at("n1");
  CHECK(of_host.causes.size() == UsageGroup::most_causes_of_part + 1);
  CHECK(of_host.all.outages == reasons);
  CHECK(of_host.causes.at({Cause::Kind::other}).outages == reasons - 16);
}

TEST_CASE("changes at one time are one change") {
  UsageMeter meter = meter_of_all();
  // A target that is down and up again at once has no outage; one that is up and down again at once has a
  // single one.
  (void)meter.add(drain(110, {0}, "a"));
  (void)meter.add(undrain(110, {0}));
  (void)meter.add(drain(120, {1}, "b"));
  (void)meter.add(undrain(130, {1}));
  (void)meter.add(drain(130, {1}, "c"));
  // If targets get several reasons at one time, the last one counts.
  (void)meter.add(undrain(140, {1}));
  (void)meter.add(drain(150, {1}, "d"));
  (void)meter.add(drain(150, {1}, "e"));
  const UsageTable table = table_until(meter, 160);
  CHECK(table.hosts.at("n0").all.outages == 0);
  CHECK(table.hosts.at("n1").all.outages == 2);
  CHECK(table.all.causes.at({Cause::Kind::drain, "b"}).outages == 1);
  CHECK(table.all.causes.at({Cause::Kind::drain, "e"}).outages == 1);
  // A property that is removed at the time of the drain does not get the outage.
  UsageMeter other = meter_of_all();
  UpdateEvent update;
  update.property_remove = {{"big", {1}}};
  (void)other.add(drain(110, {1}, "a"));
  (void)other.add(at(110, update));
  CHECK(table_until(other, 120).properties.at("big").all.outages == 0);
}

TEST_CASE("a start begins no outage, although nodes are offline until their agents are back") {
  UsageMeter meter = meter_of_all();
  RestartEvent restart;
  restart.ranks = {0, 1};
  restart.nodelist = text::Hostlist::parse("n[0-1]");
  (void)meter.add(at(110, restart));
  DefineEvent define;
  define.inventory = make_inventory("n[0-1]");
  define.exclude = {0};
  (void)meter.add(at(110, define));
  (void)meter.add(at(115, OnlineEvent{{0, 1}}));
  (void)meter.add(at(120, OfflineEvent{{0, 1}}));
  const UsageTable table = table_until(meter, 130);
  CHECK(table.all.all.outages == 1);
  CHECK(table.hosts.at("n0").all.excluded == 20 * second);
  CHECK(table.hosts.at("n0").all.unavailable == 0);
  CHECK(table.hosts.at("n0").all.offline == 15 * second);
  CHECK(table.hosts.at("n1").all.unavailable == 15 * second);
}

TEST_CASE("targets follow their hosts to other ranks") {
  UsageMeter meter = meter_of_all();
  (void)meter.add(drain(110, {1}, "fan"));
  RestartEvent restart;
  restart.ranks = restart.online = {0, 1};
  restart.nodelist = text::Hostlist::parse("n1,n0");
  (void)meter.add(at(120, restart));
  DefineEvent define;
  define.inventory = make_inventory("n1,n0");
  (void)meter.add(at(120, define));
  const UsageTable table = table_until(meter, 130);
  CHECK(table.hosts.at("n1").all.drained == 20 * second);
  CHECK(table.hosts.at("n0").all.drained == 0);
}

TEST_CASE("months are those of the calendar, and a time of years without events is missing") {
  CHECK(month_name(month_of(0)) == "1970-01");
  CHECK(month_name(month_of(to_micros(wall_time(1709208000)))) == "2024-02");
  CHECK(begin_of(month_of(to_micros(wall_time(1709251199)))) == 1706745600 * second);
  CHECK(begin_of(month_of(to_micros(wall_time(1709251199))) + 1) == 1709251200 * second);
  // The meter starts ten seconds before March; the next event comes more than two years later.
  UsageMeter meter(two_targets(), wall_time(1709251190), {false, false, true});
  (void)meter.add(drain(1709251195, {0}, "fan"));
  (void)meter.add(undrain(1709251203, {0}));
  (void)meter.add(drain(1709251203 + 1e8, {0}, "later"));
  meter.finish(wall_time(1709251203 + 1e8 + 5));
  const auto tables = meter.take();
  const Month february = month_of(1709208000 * second);
  CHECK(tables.at(february).all.all.drained == 5 * second);
  CHECK(tables.at(february).all.all.outages == 1);
  CHECK(tables.at(february + 1).all.all.drained == 3 * second);
  CHECK(tables.at(february + 1).all.all.outages == 0);
  CHECK(tables.rbegin()->second.all.all.drained == 5 * second);
  Micros missing = 0;
  NodeTime known = 0;
  for (const auto& [month, table] : tables) {
    missing += table.missing;
    known += table.all.all.known;
  }
  CHECK(missing == 100'000'000 * second);
  CHECK(known == 2 * (13 + 5) * second);
}

TEST_CASE("of too many reasons, and of long ones, the memory is bounded") {
  UsageMeter meter = meter_of_all();
  double time = 100;
  for (std::size_t i = 0; i < 2 * UsageGroup::most_causes; ++i)
    (void)meter.add(drain(++time, {0}, fmt::format("reason {}", i)));
  // The long reason is cut before a character of two bytes that would not fit.
  (void)meter.add(drain(++time, {1}, std::string(199, 'x') + "\xc3\xa9" + std::string(5000, 'x')));
  const UsageTable table = table_until(meter, time + 1);
  CHECK(table.all.causes.size() == UsageGroup::most_causes + 1);
  CHECK(table.all.causes.at({Cause::Kind::other}).known ==
        static_cast<NodeTime>(UsageGroup::most_causes + 2) * second);
  CHECK(table.all.all.unavailable == static_cast<NodeTime>(2 * UsageGroup::most_causes + 2) * second);
  UsageMeter long_reason = meter_of_all();
  (void)long_reason.add(drain(110, {1}, std::string(199, 'x') + "\xc3\xa9" + std::string(5000, 'x')));
  CHECK(table_until(long_reason, 111).all.causes.begin()->first.reason == std::string(199, 'x') + "...");
}

}  // namespace
}  // namespace resourced::test

// Drains that begin and end by themselves: what happens at which time, also over restarts, and what cancels
// it.
#include <cerrno>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/engine/engine.hpp"
#include "core/error.hpp"
#include "core/text/idset.hpp"
#include "schedule_site.hpp"
#include "thorough.hpp"

namespace resourced::engine {

using text::IdSet;

namespace {

int refusal(Site& site, std::string_view targets, double now, std::optional<double> from,
            std::optional<double> until = std::nullopt) {
  try {
    (void)site.drain(targets, now, from, until);
  } catch (const Error& error) {
    return error.errnum();
  }
  return 0;
}

}  // namespace

TEST_CASE("a scheduled drain begins and ends at its times, and is the operator's") {
  Site site;
  const Effects scheduled = site.drain("1-2", 30, 100, 200);
  REQUIRE(scheduled.records.size() == 1);
  CHECK(scheduled.records[0].hosts.encode() == "n[1-2]");
  CHECK(scheduled.updates.empty());
  CHECK(site.scheduled() == "1-2");
  CHECK(site.next() == 100);
  CHECK(site.tick(99.9).empty());
  CHECK(site.drained().empty());

  const std::vector<Record> begun = site.tick(100);
  REQUIRE(begun.size() == 1);
  const auto& drain = std::get<module::DrainEvent>(begun[0].event.body);
  CHECK(drain.ranks == IdSet::parse("1-2"));
  CHECK(drain.reason == "power");
  CHECK(begun[0].event.by == operator_of_the_day);
  CHECK(site.drained() == "1-2");
  CHECK(site.scheduled().empty());
  CHECK(site.engine.module().available() == IdSet::parse("0,3-7"));

  CHECK(site.next() == 200);
  const std::vector<Record> ended = site.tick(201);
  REQUIRE(ended.size() == 1);
  CHECK(std::holds_alternative<module::UndrainEvent>(ended[0].event.body));
  CHECK(site.drained().empty());
  CHECK_FALSE(site.next());
}

TEST_CASE("a daemon that was down at the time acts when it starts") {
  Site site;
  (void)site.drain("1", 30, 100, std::nullopt);
  (void)site.drain("2", 30, std::nullopt, 100);
  (void)site.drain("3", 30, 100, 150);
  (void)site.drain("4", 30, 500, 600);
  Site next(200, site.fold);
  CHECK(next.drained() == "2");
  CHECK(next.scheduled() == "1,3-4");
  (void)next.tick(200);
  CHECK(next.drained() == "1");
  CHECK(next.scheduled() == "4");
  CHECK(next.next() == 500);
  // The end of a drain in force is known after a restart, too.
  (void)next.tick(500);
  Site last(550, next.fold);
  CHECK(last.drained() == "1,4");
  CHECK(last.next() == 600);
  (void)last.tick(600);
  CHECK(last.drained() == "1");
}

TEST_CASE("undrain cancels what is scheduled, also for targets that are not drained") {
  Site site;
  (void)site.drain("1-3", 30, 100, 200);
  (void)site.drain("3", 40, std::nullopt, std::nullopt);
  const Effects cancelled = site.undrain("2-3", 50);
  REQUIRE(cancelled.records.size() == 2);
  CHECK(std::holds_alternative<module::UndrainEvent>(cancelled.records[0].event.body));
  CHECK(std::holds_alternative<module::CancelEvent>(cancelled.records[1].event.body));
  CHECK(site.scheduled() == "1");
  CHECK_THROWS_WITH(site.undrain("1-2", 60), "rank 2 not drained");
  (void)site.tick(100);
  CHECK(site.drained() == "1");
  Site next(100, site.fold);
  CHECK(next.drained() == "1");
  CHECK(next.scheduled().empty());
}

TEST_CASE("a drain of somebody else stays when a scheduled one begins or ends") {
  Site site;
  (void)site.drain("1-2", 30, 100, 200);
  (void)site.step(module::Command(module::DrainCommand{{"disk"}, "2", module::DrainMode::none}), 50);
  (void)site.tick(100);
  CHECK(site.engine.module().drains().find(2)->reason == "disk");
  // An operator overwrites the drain, without an end.
  (void)site.step(module::Command(module::DrainCommand{{"fan"}, "1", module::DrainMode::overwrite}), 150);
  (void)site.tick(200);
  CHECK(site.drained() == "1-2");
  CHECK(site.engine.module().drains().find(2)->reason == "disk");
}

TEST_CASE("a scheduled drain waits for the end of an operator's drain") {
  Site site;
  (void)site.drain("1-3", 30, 100, 400);
  (void)site.step(module::Command(module::DrainCommand{{"disk", wall_time(200)}, "1", {}, {}}), 50);
  (void)site.step(module::Command(module::DrainCommand{{"rolling"}, "2-3", {}}), 50);
  CHECK(site.tick(100).empty());
  CHECK(site.scheduled() == "1-3");
  // Nothing is due before the first operator's drain ends, so the daemon sleeps until then.
  CHECK(site.next() == 200);
  const Effects ended = site.step(Tick{}, 200);
  CHECK(site.engine.module().drains().find(1)->reason == "power");
  CHECK(site.engine.module().drains().find(1)->until == wall_time(400));
  // The target is not up in between for any scheduler.
  CHECK(ended.updates.empty());
  REQUIRE(ended.records.size() == 1);
  CHECK(ended.records[0].event.by == operator_of_the_day);

  module::UndrainCommand undrain{"2", {}, {}, true};
  const Effects undrained = site.step(module::Command(undrain), 250);
  REQUIRE(undrained.records.size() == 1);
  CHECK(std::get<module::DrainEvent>(undrained.records[0].event.body).scheduled);
  CHECK(site.engine.module().drains().find(2)->reason == "power");
  CHECK(site.scheduled() == "3");
  // The drain still waits after a restart; one whose end comes before it could begin is cancelled.
  Site next(300, site.fold);
  CHECK(next.scheduled() == "3");
  (void)next.tick(300);
  CHECK(next.next() == 400);
  (void)next.tick(400);
  CHECK(next.scheduled().empty());
  CHECK(next.drained() == "3");
  CHECK_FALSE(next.next());
}

TEST_CASE("an undrain and a drain can be for one reason alone") {
  Site site;
  (void)site.drain("1", 30, std::nullopt, std::nullopt);
  module::UndrainCommand undrain{"1", {}, {}, false, "fan"};
  CHECK_THROWS_WITH(site.step(module::Command(undrain), 40), "rank 1 not drained for this reason");
  module::DrainCommand drain{{"mine"}, "1", module::DrainMode::overwrite};
  drain.if_reason.emplace("fan");
  CHECK_THROWS_WITH(site.step(module::Command(drain), 40), "rank 1 not drained for this reason");
  drain.targets = "2";
  CHECK_THROWS_WITH(site.step(module::Command(drain), 40), "rank 2 not drained for this reason");
  drain.targets = "1";
  drain.if_reason.emplace("power");
  (void)site.step(module::Command(drain), 40);
  CHECK(site.engine.module().drains().find(1)->reason == "mine");
  undrain.if_reason = "mine";
  undrain.if_reason = "";
  CHECK_THROWS_WITH(site.step(module::Command(undrain), 50), "rank 1 not drained for this reason");
  undrain.if_reason = "mine";
  (void)site.step(module::Command(undrain), 50);
  CHECK(site.drained().empty());
}

TEST_CASE("an undrain can be for drains without a reason alone") {
  Site site;
  (void)site.step(module::Command(module::DrainCommand{{}, "1", {}}), 30);
  module::UndrainCommand undrain{"1-2", {}, {}, false, ""};
  (void)site.step(module::Command(module::DrainCommand{{"fan"}, "2", {}}), 30);
  CHECK_THROWS_WITH(site.step(module::Command(undrain), 40), "rank 2 not drained for this reason");
  undrain.targets = "1";
  (void)site.step(module::Command(undrain), 40);
  CHECK(site.drained() == "2");
}

TEST_CASE("a drain can be for targets alone that are not drained, whatever the reason") {
  Site site;
  (void)site.step(module::Command(module::DrainCommand{{}, "1", {}}), 30);
  module::DrainCommand drain{{"mine"}, "1-2", {}};
  drain.if_not_drained = true;
  CHECK_THROWS_WITH(site.step(module::Command(drain), 40), "rank 1 already drained");
  drain.from = wall_time(100);
  CHECK_THROWS_WITH(site.step(module::Command(drain), 40), "rank 1 already drained");
  CHECK_FALSE(site.engine.module().drains().find(1)->reason);
  drain.targets = "2";
  drain.from.reset();
  (void)site.step(module::Command(drain), 40);
  CHECK(site.engine.module().drains().find(2)->reason == "mine");
}

TEST_CASE("an operator's drain without a reason stays without an end") {
  Site site;
  (void)site.step(module::Command(module::DrainCommand{{}, "1", module::DrainMode::none}), 30);
  (void)site.drain("1-2", 30, 100, 200);
  (void)site.tick(100);
  CHECK(site.drained() == "1-2");
  CHECK_FALSE(site.engine.module().drains().find(1)->reason);
  (void)site.tick(200);
  CHECK(site.drained() == "1");
}

TEST_CASE("an undrain that keeps what is scheduled ends the present drain alone") {
  Site site;
  (void)site.drain("1", 30, 100, std::nullopt);
  module::UndrainCommand undrain{"1", {}, {}, true};
  CHECK_THROWS_WITH(site.step(module::Command(undrain), 40), "rank 1 not drained");
  (void)site.step(module::Command(module::DrainCommand{{"disk"}, "1", module::DrainMode::none}), 50);
  (void)site.step(module::Command(undrain), 60);
  CHECK(site.drained().empty());
  CHECK(site.scheduled() == "1");
}

TEST_CASE("an end can be set and taken back for a target that is drained already") {
  using module::DrainMode;
  Site site;
  (void)site.drain("1", 30, std::nullopt, std::nullopt);
  (void)site.drain("1", 40, std::nullopt, 200, DrainMode::update);
  CHECK_FALSE(site.next());
  (void)site.drain("1", 40, std::nullopt, 200, DrainMode::overwrite);
  CHECK(site.next() == 200);
  CHECK(site.engine.module().drains().find(1)->timestamp == wall_time(30));
  (void)site.drain("1", 50, std::nullopt, std::nullopt, DrainMode::overwrite);
  CHECK_FALSE(site.next());
}

TEST_CASE("the end of a drain does not cancel the next one of the same target") {
  Site site;
  (void)site.drain("1", 30, std::nullopt, 100);
  (void)site.drain("1", 30, 100, 200);
  (void)site.tick(100);
  CHECK(site.drained() == "1");
  CHECK(site.next() == 200);
}

TEST_CASE("times without sense, and excluded targets, are refused") {
  Site site(20, {}, "7");
  CHECK(refusal(site, "1", 50, std::nullopt, 50) == EINVAL);
  CHECK(refusal(site, "1", 50, 100, 100) == EINVAL);
  CHECK(refusal(site, "1", 50, 10, 40) == EINVAL);
  CHECK(refusal(site, "6-7", 50, 100, std::nullopt) == EINVAL);
  CHECK(site.scheduled().empty());
  // A beginning in the past means now.
  CHECK(refusal(site, "1", 50, 40, 60) == 0);
  CHECK(site.drained() == "1");
}

TEST_CASE("targets that are excluded or have left when a drain begins are left out") {
  Site site;
  (void)site.drain("1-4", 30, 100, std::nullopt);
  (void)site.step(module::Command(module::ShrinkCommand{"1"}), 40);
  module::ReloadCommand reload;
  reload.exclude = IdSet::parse("2");
  (void)site.step(module::Command(reload), 50);
  (void)site.tick(100);
  CHECK(site.drained() == "3-4");
  CHECK(site.scheduled().empty());
  Site next(200, site.fold);
  CHECK(next.drained() == "3-4");
  CHECK(next.scheduled().empty());
}

TEST_CASE("many that are due at once come in bounded steps") {
  Site site;
  for (IdSet::Id rank = 0; rank <= last_rank; ++rank) {
    for (int i = 0; i < 3; ++i)
      (void)site.step(module::Command(module::DrainCommand{
                          {fmt::format("{}", rank)}, std::to_string(rank), {}, wall_time(100 + rank)}),
                      30);
  }
  CHECK(site.engine.module().due(wall_time(200), 3).events.size() == 3);
  CHECK(site.tick(200).size() == last_rank + 1);
  CHECK(site.drained() == "0-7");
}

TEST_CASE("a drain does not begin in the past, but for clocks that differ, nor after the year 9999") {
  Site site;
  CHECK(refusal(site, "1", 1000, 939) == EINVAL);
  CHECK(refusal(site, "1", 1000, 1) == EINVAL);
  CHECK(refusal(site, "1", 1000, 1e300) == EINVAL);
  CHECK(refusal(site, "1", 1000, std::nullopt, 1e300) == EINVAL);
  CHECK(site.drained().empty());
  CHECK(refusal(site, "1", 1000, 941) == 0);
  CHECK(site.drained() == "1");
}

TEST_CASE("after an event from a clock that was ahead, later is later, and past is past") {
  Site site;
  (void)site.drain("7", 1e6, std::nullopt, std::nullopt);
  // The clock is correct again.
  const Effects scheduled = site.drain("1", 50, 100, 200);
  REQUIRE(scheduled.records.size() == 1);
  CHECK(scheduled.updates.empty());
  CHECK(site.drained() == "7");
  CHECK(site.scheduled() == "1");
  CHECK(refusal(site, "2", 50, std::nullopt, 150) == 0);
  CHECK(refusal(site, "3", 50, std::nullopt, 50) == EINVAL);
  CHECK(site.next() == 100);
  CHECK(site.tick(99).empty());
  CHECK(site.tick(100).size() == 1);
  CHECK(site.drained() == "1-2,7");
  CHECK(site.tick(150).size() == 1);
  const std::vector<Record> ended = site.tick(200);
  CHECK(site.drained() == "7");
  // Timestamps in the log do not decrease.
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].event.timestamp == wall_time(1e6));
}

TEST_CASE("a drain keeps its end when it is given a reason") {
  using module::DrainMode;
  for (const DrainMode mode : {DrainMode::none, DrainMode::update}) {
    Site site;
    module::DrainCommand timed{{}, "1-2", {}};
    timed.until = wall_time(200);
    (void)site.step(module::Command(timed), 30);
    (void)site.step(module::Command(module::DrainCommand{{"fan"}, "1", mode}), 40);
    CHECK(site.engine.module().drains().find(1)->reason == "fan");
    CHECK(site.engine.module().drains().find(1)->until == wall_time(200));
    // An end that is given with the reason replaces the former one.
    timed.targets = "2";
    timed.reason = "disk";
    timed.mode = mode;
    timed.until = wall_time(300);
    (void)site.step(module::Command(timed), 40);
    Site next(150, site.fold);
    (void)next.tick(200);
    CHECK(next.drained() == "2");
    (void)next.tick(300);
    CHECK(next.drained().empty());
  }
}

// Compared with a model that keeps the drain and the scheduled drains of each target, without groups, events
// and restarts.
TEST_CASE("any history of scheduled drains, ends and restarts is that of each target alone") {
  struct Target {
    bool drained = false;
    std::optional<double> until;
    /// The ends of the scheduled drains, by their begins.
    std::map<double, std::optional<double>> scheduled;

    void pass(double now) {
      std::erase_if(scheduled, [&](const auto& one) { return one.second && *one.second <= now; });
      if (drained && until && *until <= now) {
        drained = false;
        until.reset();
      }
      if (drained || scheduled.empty() || scheduled.begin()->first > now) return;
      drained = true;
      until = scheduled.begin()->second;
      scheduled.erase(scheduled.begin());
    }
  };
  for (unsigned seed = 0; seed < resourced::test::unless_sanitized(300); ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned most) { return static_cast<unsigned>(random() % most); };
    Site site;
    std::map<IdSet::Id, Target> model;
    double now = 30;
    for (int i = 0; i < 60; ++i) {
      CAPTURE(seed);
      CAPTURE(i);
      now += below(20);
      // An event from a clock that is ahead for a moment does not change other times.
      if (below(10) == 0) site.touch(now + 1e5);
      (void)site.tick(now);
      for (IdSet::Id rank = 0; rank <= last_rank; ++rank) model[rank].pass(now);
      const IdSet::Id rank = below(last_rank + 1);
      Target& target = model[rank];
      const std::string name = std::to_string(rank);
      const double from = now + 1 + below(60);
      std::optional<double> end;
      if (below(2) == 0) end = from + 1 + below(40);
      switch (below(7)) {
        case 0:
        case 1:
        case 2:
          (void)site.drain(name, now, from, end);
          target.scheduled[from] = end;
          break;
        case 3:
          if (target.scheduled.empty()) break;
          (void)site.step(module::Command(module::CancelCommand{
                              name, wall_time(std::prev(target.scheduled.end())->first)}),
                          now);
          target.scheduled.erase(std::prev(target.scheduled.end()));
          break;
        case 4:
          (void)site.drain(name, now, std::nullopt, end, module::DrainMode::force_overwrite);
          target.drained = true;
          target.until = end;
          break;
        case 5:
          if (target.drained || !target.scheduled.empty()) (void)site.undrain(name, now);
          target = {};
          break;
        default:
          site = Site(now, site.fold);
      }
      IdSet drained;
      IdSet scheduled;
      std::map<double, IdSet> begins;
      for (const auto& [id, state] : model) {
        if (state.drained) drained.insert(id);
        if (!state.scheduled.empty()) scheduled.insert(id);
        for (const auto& [begin, over] : state.scheduled) begins[begin].insert(id);
      }
      REQUIRE(site.drained() == drained.encode());
      REQUIRE(site.scheduled() == scheduled.encode());
      std::map<double, IdSet> found;
      for (const auto& [drain, ranks] : site.engine.module().scheduled_drains().groups())
        found[to_number(drain.timestamp)] |= ranks;
      REQUIRE(found == begins);
    }
  }
}

}  // namespace resourced::engine

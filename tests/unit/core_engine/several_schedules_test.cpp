// Several scheduled drains of one target.
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "core/engine/engine.hpp"
#include "schedule_site.hpp"

namespace resourced::engine {

TEST_CASE("several drains may be scheduled for one target, and each of them begins and ends") {
  Site site;
  (void)site.drain("1-2", 30, 100, 150);
  (void)site.drain("2", 40, 300, 400);
  (void)site.tick(100);
  CHECK(site.drained() == "1-2");
  CHECK(site.scheduled() == "2");
  Site next(120, site.fold);
  (void)next.tick(150);
  CHECK(next.drained().empty());
  (void)next.tick(300);
  CHECK(next.drained() == "2");
  (void)next.tick(400);
  CHECK(next.drained().empty());
  CHECK_FALSE(next.next());
}

TEST_CASE("a scheduled drain replaces the one of the same begin, and comes before those that begin later") {
  Site site;
  (void)site.drain("1-2", 30, 300, 400);
  (void)site.drain("2", 30, 100, 350);
  (void)site.drain("2", 30, 300, 500);
  CHECK(site.next() == 100);
  (void)site.tick(100);
  CHECK(site.drained() == "2");
  // The second one waits for the end of the first.
  (void)site.tick(300);
  CHECK(site.engine.module().drains().find(1)->until == wall_time(400));
  CHECK(site.engine.module().drains().find(2)->until == wall_time(350));
  const std::vector<Record> next = site.tick(350);
  REQUIRE(next.size() == 1);
  CHECK(std::get<module::DrainEvent>(next[0].event.body).scheduled);
  CHECK(site.engine.module().drains().find(2)->until == wall_time(500));
  CHECK(site.scheduled().empty());
}

TEST_CASE("one that is over before it could begin makes way for the next one") {
  const auto with_both = [] {
    Site site;
    (void)site.step(module::Command(module::DrainCommand{{"disk"}, "1", {}}), 30);
    (void)site.drain("1", 30, 100, 200);
    (void)site.drain("1", 30, 150, 300);
    (void)site.tick(150);
    return site;
  };
  Site ticked = with_both();
  CHECK(ticked.next() == 200);
  (void)ticked.tick(200);
  // Without a tick at 200, the first one is over and still scheduled.
  Site late = with_both();
  for (Site* site : {&ticked, &late}) {
    const Effects effects = site->step(module::Command(module::UndrainCommand{"1", {}, {}, true}), 250);
    CHECK(effects.updates.empty());
    CHECK(site->drained() == "1");
    CHECK(site->engine.module().drains().find(1)->until == wall_time(300));
    CHECK(site->scheduled().empty());
  }
}

// A listing shows the begin 100.5 as 101 if it rounds, and as 100 if it drops the fraction.
TEST_CASE("scheduled drains are cancelled by their begin, to the second, or all") {
  const auto cancel = [](Site& site, std::string_view targets, std::optional<double> from) {
    module::CancelCommand command{std::string(targets)};
    if (from) command.from = wall_time(*from);
    return site.step(module::Command(command), 50);
  };
  Site site;
  (void)site.drain("1-3", 30, std::nullopt, std::nullopt);
  (void)site.drain("1-2", 30, 100.5, 200);
  (void)site.drain("2", 30, 300, 400);
  CHECK_THROWS_WITH(cancel(site, "1-2", 300), "rank 1 not scheduled to be drained at that time");
  for (const double other : {99.0, 99.5, 101.1, 102.0})
    CHECK_THROWS_WITH(cancel(site, "1-2", other), "ranks 1-2 not scheduled to be drained at that time");
  double from = 0;
  SUBCASE("without its fraction") { from = 100; }
  SUBCASE("exact") { from = 100.5; }
  SUBCASE("the nearest second") { from = 101; }
  const Effects one = cancel(site, "1-2", from);
  REQUIRE(one.records.size() == 1);
  CHECK(std::get<module::CancelEvent>(one.records[0].event.body).from == wall_time(100.5));
  CHECK(site.scheduled() == "2");
  CHECK(site.next() == 300);
  CHECK_THROWS_WITH(cancel(site, "1-2", std::nullopt), "rank 1 not scheduled to be drained");
  (void)site.drain("2", 30, 100, 200);
  REQUIRE(cancel(site, "2", std::nullopt).records.size() == 1);
  CHECK(site.scheduled().empty());
  CHECK(site.drained() == "1-3");
}

TEST_CASE("a target has a bounded number of scheduled drains") {
  Site site;
  constexpr auto most = static_cast<int>(module::Schedules::most);
  for (int i = most; i > 0; --i) (void)site.drain("1-2", 30, 100 * i, std::nullopt);
  (void)site.drain("3", 30, 100, std::nullopt);
  CHECK_THROWS_WITH(site.drain("1-3", 30, 99, std::nullopt),
                    "ranks 1-2 scheduled to be drained 16 times already: cancel one first");
  // One that replaces another needs no room.
  (void)site.drain("1-3", 30, 1600, 1700);
  CHECK(site.engine.module().scheduled_drains().groups().size() == most);
  (void)site.undrain("1", 30);
  (void)site.drain("1", 30, 99, std::nullopt);
  CHECK(site.next() == 99);
}

}  // namespace resourced::engine

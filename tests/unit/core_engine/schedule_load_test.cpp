// Very many scheduled drains: each step does a bounded part of the work, and drains that wait for the end of
// an operator's drain cost nothing.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/engine/engine.hpp"
#include "schedule_site.hpp"

namespace resourced::engine {

using text::IdSet;

namespace {

constexpr double begun = 100;
constexpr double all_begun = 200;
/// The largest number of events in a step: the drains that begin, and two more.
constexpr std::size_t most_events = module::Module::most_at_once + 2;

std::string all_but_the_last(IdSet::Id targets) { return fmt::format("0-{}", targets - 2); }

/// A site where all targets but the last are drained by an operator, and have scheduled drains.
Site site_with(IdSet::Id targets, std::optional<double> end_of_the_present = std::nullopt) {
  Site site(20, {}, "", targets - 1);
  module::DrainCommand present{{"disk"}, all_but_the_last(targets), {}};
  if (end_of_the_present) present.until = wall_time(*end_of_the_present);
  (void)site.step(module::Command(present), 30);
  for (IdSet::Id rank = 0; rank < targets - 1; ++rank)
    (void)site.drain(std::to_string(rank), 30, begun + 1e-4 * rank, std::nullopt);
  return site;
}

/// Takes the steps that are due at this time. Each must have a bounded number of events, and none may change
/// what a scheduler sees.
int bounded_ticks(Site& site, double now) {
  int ticks = 0;
  site.last_tick = now;
  while (site.next() && *site.next() <= now) {
    const Effects effects = site.step(Tick{}, now);
    REQUIRE(effects.records.size() <= most_events);
    REQUIRE(site.engine.module().available().count() == 1);
    ++ticks;
  }
  return ticks;
}

bool has_begun_all(const Site& site) {
  const module::DrainTable& drains = site.engine.module().drains();
  return site.scheduled().empty() && std::ranges::all_of(drains.groups(), [](const auto& group) {
           return group.first.reason == "power";
         });
}

}  // namespace

TEST_CASE("an undrain of targets whose scheduled drains wait begins these in bounded steps") {
  constexpr IdSet::Id targets = 2000;
  Site site = site_with(targets);
  CHECK(bounded_ticks(site, all_begun) > 0);
  const module::UndrainCommand undrain{all_but_the_last(targets), {}, {}, true};
  const Effects undrained = site.step(module::Command(undrain), 250);
  CHECK(undrained.records.size() <= most_events);
  CHECK(site.engine.module().available().count() == 1);
  // A daemon that is started in the meantime completes the steps.
  Site next(250, site.fold, "", targets - 1);
  for (Site* one : {&site, &next}) {
    CHECK(bounded_ticks(*one, 250) > targets / most_events);
    CHECK(has_begun_all(*one));
    CHECK(one->engine.module().drains().ranks().count() == targets - 1);
  }
}

TEST_CASE("the end of a drain begins the scheduled drains that wait for it in bounded steps") {
  constexpr IdSet::Id targets = 2000;
  Site site = site_with(targets, 300);
  (void)bounded_ticks(site, all_begun);
  CHECK(site.next() == 300);
  CHECK(bounded_ticks(site, 300) > targets / most_events);
  CHECK(has_begun_all(site));
}

TEST_CASE("an undrain leaves alone what is scheduled for later, however much it is") {
  constexpr IdSet::Id targets = 2000;
  Site site = site_with(targets);
  const std::string scheduled = site.scheduled();
  const module::UndrainCommand undrain{all_but_the_last(targets), {}, {}, true};
  CHECK(site.step(module::Command(undrain), 40).records.size() <= most_events);
  site.last_tick = 40;
  while (site.next() && *site.next() <= 40) CHECK(site.step(Tick{}, 40).records.size() <= most_events);
  CHECK(site.drained().empty());
  CHECK(site.scheduled() == scheduled);
}

TEST_CASE("scheduled drains that wait make no other step longer") {
  using Seconds = std::chrono::duration<double>;
  const auto fastest = [](IdSet::Id targets) {
    Site site = site_with(targets);
    (void)bounded_ticks(site, all_begun);
    const module::Command drain = module::DrainCommand{{"fan"}, std::to_string(targets - 1), {}};
    const module::Command undrain = module::UndrainCommand{std::to_string(targets - 1), {}, {}};
    const Now now{wall_time(all_begun), steady_time(all_begun)};
    Seconds least = std::chrono::hours(1);
    for (int i = 0; i < 100; ++i) {
      const auto start = std::chrono::steady_clock::now();
      for (const module::Command& command : {drain, undrain}) {
        (void)site.engine.step(command, now);
        CHECK_FALSE(site.engine.next_due(now.wall));
        (void)site.engine.step(Tick{}, now);
      }
      least = std::min<Seconds>(least, std::chrono::steady_clock::now() - start);
    }
    return least;
  };
  const Seconds few = fastest(500);
  const Seconds many = fastest(16000);
  CHECK(many < 6 * few);
}

}  // namespace resourced::engine

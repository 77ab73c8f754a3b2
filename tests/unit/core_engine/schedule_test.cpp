// Drains that begin and end by themselves: what happens at which time, over restarts too, and what cancels
// it.
#include <cerrno>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/engine/engine.hpp"
#include "core/engine/tables.hpp"
#include "core/error.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::engine {

using text::IdSet;

namespace {

constexpr IdSet::Id last_rank = 7;
const module::Actor operator_of_the_day = module::ByUser{1000};

/// A daemon on hosts n0 to n7, and what its log has.
struct Site {
  Engine engine;
  Tables tables;

  explicit Site(double now = 20, Tables recorded = {}, std::string_view exclude = "")
      : tables(std::move(recorded)) {
    Start input;
    input.command.inventory = std::make_shared<const rset::ResourceSet>(
        rset::ResourceSet({{IdSet::range(0, last_rank), IdSet{0}, {}}}, text::Hostlist::parse("n[0-7]")));
    input.command.online = input.command.inventory->ranks();
    input.command.recorded = tables.state();
    input.command.exclude = IdSet::parse(exclude);
    (void)step(input, now);
  }
  Effects step(const Input& input, double now) {
    Effects effects = engine.step(input, {wall_time(now), steady_time(now)}, operator_of_the_day);
    for (const Record& record : effects.records) tables.apply(record.changes);
    return effects;
  }
  Effects drain(std::string_view targets, double now, std::optional<double> from, std::optional<double> until,
                module::DrainMode mode = module::DrainMode::none) {
    module::DrainCommand command{std::string(targets), "power", mode};
    if (from) command.from = wall_time(*from);
    if (until) command.until = wall_time(*until);
    return step(module::Command(command), now);
  }
  Effects undrain(std::string_view targets, double now) {
    return step(module::Command(module::UndrainCommand{std::string(targets), {}, {}}), now);
  }
  /// All that is due at this time.
  std::vector<Record> tick(double now) {
    std::vector<Record> records;
    while (engine.next_due() && *engine.next_due() <= wall_time(now)) {
      Effects effects = step(Tick{}, now);
      std::move(effects.records.begin(), effects.records.end(), std::back_inserter(records));
    }
    return records;
  }
  [[nodiscard]] std::string drained() const { return engine.module().drains().ranks().encode(); }
  [[nodiscard]] std::string scheduled() const { return engine.module().scheduled_drains().ranks().encode(); }
  [[nodiscard]] std::optional<double> next() const {
    const auto due = engine.next_due();
    return due ? std::optional(to_number(*due)) : std::nullopt;
  }
};

int refusal(Site& site, std::string_view targets, double now, std::optional<double> from,
            std::optional<double> until) {
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
  Site next(200, site.tables);
  CHECK(next.drained() == "2");
  CHECK(next.scheduled() == "1,3-4");
  (void)next.tick(200);
  CHECK(next.drained() == "1");
  CHECK(next.scheduled() == "4");
  CHECK(next.next() == 500);
  // The end of a drain in force is known after a restart, too.
  (void)next.tick(500);
  Site last(550, next.tables);
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
  Site next(100, site.tables);
  CHECK(next.drained() == "1");
  CHECK(next.scheduled().empty());
}

TEST_CASE("a drain of somebody else stays when a scheduled one begins or ends") {
  Site site;
  (void)site.drain("1-2", 30, 100, 200);
  (void)site.step(module::Command(module::DrainCommand{"2", "disk", module::DrainMode::none}), 50);
  (void)site.tick(100);
  CHECK(site.engine.module().drains().find(2)->reason == "disk");
  // Overwritten without an end.
  (void)site.step(module::Command(module::DrainCommand{"1", "fan", module::DrainMode::overwrite}), 150);
  CHECK(site.tick(200).empty());
  CHECK(site.drained() == "1-2");
}

TEST_CASE("an operator's drain without a reason stays without an end") {
  Site site;
  (void)site.step(module::Command(module::DrainCommand{"1", std::nullopt, module::DrainMode::none}), 30);
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
  (void)site.step(module::Command(module::DrainCommand{"1", "disk", module::DrainMode::none}), 50);
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
  // A beginning in the past is now.
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
  Site next(200, site.tables);
  CHECK(next.drained() == "3-4");
  CHECK(next.scheduled().empty());
}

TEST_CASE("many that are due at once come in bounded steps") {
  Site site;
  for (IdSet::Id rank = 0; rank <= last_rank; ++rank) {
    for (int i = 0; i < 3; ++i)
      (void)site.step(
          module::Command(module::DrainCommand{
              std::to_string(rank), fmt::format("{}", rank), {}, wall_time(100 + rank), std::nullopt}),
          30);
  }
  CHECK(site.engine.module().due(wall_time(200), 3).size() == 3);
  CHECK(site.tick(200).size() == last_rank + 1);
  CHECK(site.drained() == "0-7");
}

// Against a model that keeps for each target what is drained, and what is scheduled, and knows nothing of
// groups, events and restarts.
TEST_CASE("any history of scheduled drains, ends and restarts is that of each target alone") {
  struct Target {
    bool drained = false;
    std::optional<double> until;
    std::optional<std::pair<double, std::optional<double>>> scheduled;

    void pass(double now) {
      if (drained && until && *until <= now) {
        drained = false;
        until.reset();
      }
      if (!scheduled || scheduled->first > now) return;
      const auto end = scheduled->second;
      scheduled.reset();
      if (drained || (end && *end <= now)) return;
      drained = true;
      until = end;
    }
  };
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned most) { return static_cast<unsigned>(random() % most); };
    Site site;
    std::map<IdSet::Id, Target> model;
    double now = 30;
    for (int i = 0; i < 60; ++i) {
      CAPTURE(seed);
      CAPTURE(i);
      now += below(20);
      (void)site.tick(now);
      for (IdSet::Id rank = 0; rank <= last_rank; ++rank) model[rank].pass(now);
      const IdSet::Id rank = below(last_rank + 1);
      Target& target = model[rank];
      const std::string name = std::to_string(rank);
      const double from = now + 1 + below(60);
      std::optional<double> end;
      if (below(2) == 0) end = from + 1 + below(40);
      switch (below(5)) {
        case 0:
          (void)site.drain(name, now, from, end);
          target.scheduled = {from, end};
          break;
        case 1:
          (void)site.drain(name, now, std::nullopt, end, module::DrainMode::force_overwrite);
          target.drained = true;
          target.until = end;
          break;
        case 2:
          if (target.drained || target.scheduled) (void)site.undrain(name, now);
          target = {};
          break;
        default:
          site = Site(now, site.tables);
      }
      IdSet drained;
      IdSet scheduled;
      for (const auto& [id, state] : model) {
        if (state.drained) drained.insert(id);
        if (state.scheduled) scheduled.insert(id);
      }
      REQUIRE(site.drained() == drained.encode());
      REQUIRE(site.scheduled() == scheduled.encode());
    }
  }
}

}  // namespace resourced::engine

// Health of nodes as inputs of the engine: drains and undrains that follow from checks.
#include <doctest/doctest.h>

#include "health_ward.hpp"

namespace resourced::engine::health_tests {
namespace {

TEST_CASE("a check that fails drains its node for the reason that it gives") {
  Ward it(HealthReturn::manual);
  (void)it.hello(1);
  CHECK(it.unchecked() == "1");
  const Effects drained = it.check(1, 3, "disk /scratch is full");
  REQUIRE(drained.unfit.size() == 1);
  CHECK(drained.unfit[0].host == "n1");
  CHECK(drained.unfit[0].reason == "health: disk /scratch is full");
  CHECK(it.reason(1) == "health: disk /scratch is full");
  CHECK(it.unchecked() == "1");
  // A second failure does not replace the reason of the first one.
  CHECK(it.check(1, 1, "and the clock is wrong").records.empty());
  CHECK(it.reason(1) == "health: disk /scratch is full");
  CHECK(it.check(1, 0).records.empty());  // only an operator undrains it
  CHECK(it.unchecked().empty());

  (void)it.hello(2);
  (void)it.check(2, 255);
  CHECK(it.reason(2) == "health: the check failed with status 255");
}

TEST_CASE("results of agents that run no checks are refused, those of unknown agents ignored") {
  Ward it(HealthReturn::manual);
  (void)it.hello(1, false);
  CHECK(it.unchecked().empty());
  CHECK_THROWS_WITH_AS((void)it.check(1, 1, "bad"), "the hello of the agent on n1 says nothing of checks",
                       Error);
  CHECK(it.step(AgentHealth{77, {1, "bad"}}).records.empty());
  CHECK(it.reason(1) == "up");
}

TEST_CASE("a node that stays unhealthy has failed once, whatever its checks print") {
  for (const HealthReturn on_return : {HealthReturn::manual, HealthReturn::automatic}) {
    Ward it(on_return);
    (void)it.hello(0);
    (void)it.check(0, 1, "gpu temperature 91 C");
    for (int degrees = 92; degrees < 120; ++degrees)
      CHECK(it.check(0, 1, "gpu temperature " + std::to_string(degrees) + " C").records.empty());
    CHECK(it.reason(0) == "health: gpu temperature 91 C");
    it.undrain("0");
    CHECK(it.check(0, 1, "gpu temperature 120 C").records.empty());
    CHECK(it.reason(0) == "up");
  }
}

TEST_CASE("a node that an operator undrains stays up until a check has passed") {
  Ward it(HealthReturn::manual);
  (void)it.hello(0);
  (void)it.check(0, 1, "bad memory");
  it.undrain("0");
  (void)it.check(0, 1, "bad memory");
  (void)it.hello(0);  // the agent has reconnected, and repeats its result
  (void)it.check(0, 1, "bad memory");
  CHECK(it.reason(0) == "up");
  CHECK(it.unchecked() == "0");
  (void)it.check(0, 1, "bad disk");
  CHECK(it.reason(0) == "up");
  (void)it.check(0, 0);
  (void)it.check(0, 1, "bad disk");
  CHECK(it.reason(0) == "health: bad disk");
}

TEST_CASE("ill health does not touch the drain of an operator") {
  Ward it(HealthReturn::automatic);
  for (const IdSet::Id rank : {0U, 1U}) (void)it.hello(rank);
  it.drain("0", "maintenance");
  it.drain("1", std::nullopt);
  for (const IdSet::Id rank : {0U, 1U}) {
    CHECK(it.check(rank, 1, "bad").records.empty());
    CHECK(it.check(rank, 0).records.empty());
  }
  CHECK(it.reason(0) == "maintenance");
  CHECK(it.reason(1) == "no reason");
}

TEST_CASE("an excluded node is not drained until it is excluded no longer") {
  Ward it(HealthReturn::manual, false, {}, IdSet{1});
  (void)it.hello(1);
  CHECK(it.check(1, 1, "bad").records.empty());
  const Effects included = it.step(module::Command{module::ReloadCommand{}});
  REQUIRE(included.unfit.size() == 1);
  CHECK(it.reason(1) == "health: bad");
  CHECK_FALSE(it.engine.module().available().contains(1));
}

TEST_CASE("with health-return auto a check that passes ends the drain of one that failed") {
  Ward it(HealthReturn::automatic);
  (void)it.hello(0);
  (void)it.check(0, 1, "bad");
  CHECK(it.reason(0) == "health: bad");
  const Effects passed = it.check(0, 0);
  REQUIRE(passed.records.size() == 1);
  CHECK(std::holds_alternative<module::UndrainEvent>(passed.records[0].event.body));
  CHECK(it.reason(0) == "up");
  CHECK(passed.health_changed);
  CHECK_FALSE(it.check(0, 0).health_changed);
}

TEST_CASE("a drain that an operator drains again is the operator's, and is not ended") {
  const struct {
    module::DrainMode mode;
    std::optional<std::string> reason;
    std::string expected;
  } cases[] = {
      {module::DrainMode::update, "ordered a disk", "ordered a disk"},
      {module::DrainMode::update, std::nullopt, "health: bad"},
      {module::DrainMode::overwrite, "ordered a disk", "ordered a disk"},
      {module::DrainMode::overwrite, "health: bad", "health: bad"},
      {module::DrainMode::force_overwrite, "health: bad", "health: bad"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.expected);
    Ward it(HealthReturn::automatic);
    (void)it.hello(0);
    (void)it.check(0, 1, "bad");
    CHECK(it.drained_by(0) == module::Actor(module::ByHost{"n0"}));
    it.drain("0", one.reason, one.mode);
    CHECK(it.reason(0) == one.expected);
    CHECK(it.drained_by(0) == module::Actor(module::ByUser{7}));
    (void)it.check(0, 0);
    CHECK(it.reason(0) == one.expected);
  }
}

TEST_CASE("of several targets an update takes over those that are drained for health or silence") {
  Ward it(HealthReturn::automatic);
  (void)it.hello(0);
  (void)it.check(0, 1, "bad");
  it.drain("1", "mine");
  (void)it.pass(1000);  // 2 and 3 fall silent
  const std::string silent = it.reason(2);
  it.drain("0-3", std::nullopt, module::DrainMode::update);
  CHECK(it.reason(0) == "health: bad");
  CHECK(it.reason(1) == "mine");
  CHECK(it.reason(2) == silent);
  for (const IdSet::Id rank : {0U, 1U, 2U, 3U})
    CHECK(it.drained_by(rank) == module::Actor(module::ByUser{7}));
  (void)it.hello(2, false);
  CHECK(it.reason(2) == silent);
}

TEST_CASE("drains with the same reason by others are not ended") {
  Ward it(HealthReturn::automatic);
  for (const IdSet::Id rank : {0U, 1U}) (void)it.hello(rank);
  it.drain("0", "health: bad");
  it.drain("1", "lost: silent since yesterday");
  for (const IdSet::Id rank : {0U, 1U}) (void)it.check(rank, 0);
  CHECK(it.reason(0) == "health: bad");
  CHECK(it.reason(1) == "lost: silent since yesterday");
}

TEST_CASE("a drain for ill health outlives a restart, and ends with the first check that passes") {
  Ward it(HealthReturn::automatic, false,
          {{{{"health: bad"}, wall_time(10), module::ByHost{"n0"}}, {"n0", 0}},
           {{{"health: bad"}, wall_time(10), module::ByHost{"n1"}}, {"n1", 0}},
           {{{"health: bad"}, wall_time(10), module::ByHost{"n1"}}, {"n2", 0}}});
  (void)it.hello(2);
  (void)it.check(2, 0);
  CHECK(it.reason(2) == "health: bad");  // the drain is by the agent of another host
  (void)it.hello(0);
  (void)it.hello(1, false);  // the agent runs no checks any more
  CHECK(it.reason(0) == "health: bad");
  (void)it.check(0, 0);
  CHECK(it.reason(0) == "up");
  CHECK(it.reason(1) == "health: bad");
}

TEST_CASE("a node that is unhealthy again and again does not return by itself") {
  Ward it(HealthReturn::automatic);
  (void)it.hello(0);
  for (int i = 0; i < 2; ++i) {
    (void)it.check(0, 1, "bad");
    CHECK(it.reason(0) == "health: bad");
    (void)it.check(0, 0);
    CHECK(it.reason(0) == "up");
  }
  (void)it.check(0, 1, "bad");
  CHECK(it.reason(0) == "flapping: unhealthy more than 2 times within 10m");
  (void)it.check(0, 0);
  CHECK(it.reason(0) == "flapping: unhealthy more than 2 times within 10m");
}

TEST_CASE("when health-return becomes auto, nodes that are well return") {
  Ward it(HealthReturn::manual);
  for (const IdSet::Id rank : {0U, 1U, 2U}) (void)it.hello(rank);
  for (const IdSet::Id rank : {0U, 1U, 2U}) (void)it.check(rank, 1, "bad");
  (void)it.check(0, 0);
  (void)it.check(2, 0);
  it.farewell(2);
  it.settings.health.on_return = HealthReturn::automatic;
  (void)it.step(WatchNodes{it.settings});
  CHECK(it.reason(0) == "up");
  CHECK(it.reason(1) == "health: bad");
  CHECK(it.reason(2) == "health: bad");
}

TEST_CASE("targets that leave, or another inventory, leave no health behind") {
  Ward it(HealthReturn::manual);
  for (const IdSet::Id rank : {0U, 1U}) (void)it.hello(rank);
  (void)it.step(module::Command{module::ShrinkCommand{"0"}});
  CHECK(it.unchecked() == "1");
  module::DefineCommand load;
  load.inventory = some_hosts("n[0-1]");
  (void)it.step(load);
  CHECK(it.unchecked().empty());
}

TEST_CASE("nobody returns a node that lacks what the inventory says, and the log says what it lacks") {
  const IdSet other{1};
  const std::string lack = "missing resources: core0";
  Ward it(HealthReturn::automatic);
  SUBCASE("a silent node that is heard again") {
    (void)it.pass(1000);
    REQUIRE(it.reason(0).starts_with("lost: "));
    (void)it.hello(0, false, other);
  }
  SUBCASE("a node that is healthy again") {
    (void)it.hello(0);
    (void)it.check(0, 1, "bad");
    (void)it.hello(0, true, other);
    REQUIRE(it.reason(0) == "health: bad");
    (void)it.check(0, 0);
  }
  SUBCASE("when health-return becomes auto") {
    it.settings.health.on_return = HealthReturn::manual;
    (void)it.step(WatchNodes{it.settings});
    (void)it.pass(1000);
    (void)it.hello(0, false, other);
    REQUIRE(it.reason(0).starts_with("lost: "));
    it.settings.health.on_return = HealthReturn::automatic;
    (void)it.step(WatchNodes{it.settings});
  }
  SUBCASE("the end of a drain") {
    module::DrainCommand command{{"power"}, "0", module::DrainMode::none};
    command.until = wall_time(it.now + 50);
    (void)it.step(module::Command(command), module::ByUser{7});
    (void)it.hello(0, false, other);
    REQUIRE(it.reason(0) == "power");
    it.now += 50;
    (void)it.step(Tick{});
  }
  SUBCASE("a node that is drained without a reason") {
    it.drain("0", std::nullopt);
    (void)it.hello(0, false, other);
  }
  CHECK(it.reason(0) == lack);
  CHECK(it.drained_by(0) == module::Actor(module::ByHost{"n0"}));
  CHECK_FALSE(it.engine.module().available().contains(0));
}

TEST_CASE("an operator's undrain of a node that lacks what the inventory says is refused by name") {
  const IdSet other{1};
  Ward it(HealthReturn::manual);
  (void)it.hello(0, false);
  (void)it.hello(1, false);
  it.drain("0-1", "a new board");
  const Effects hello = it.hello(1, false, other);
  // The drain keeps its reason, but the mismatch is reported.
  CHECK(it.reason(1) == "a new board");
  REQUIRE(hello.unfit.size() == 1);
  CHECK(hello.unfit[0].host == "n1");
  CHECK(hello.unfit[0].reason == "missing resources: core0");
  CHECK_THROWS_WITH_AS(
      it.undrain("0-1"),
      "n1 does not match the inventory: missing resources: core0; repair it, correct the inventory "
      "or relax [resource.verify]",
      Error);
  CHECK(it.reason(0) == "a new board");
  CHECK(it.reason(1) == "a new board");
  SUBCASE("until it is repaired") { (void)it.hello(1, false); }
  SUBCASE("until the comparison is relaxed") {
    it.settings.verify = {};
    it.settings.verify.core = rset::VerifyMode::ignore;
    (void)it.step(WatchNodes{it.settings});
  }
  SUBCASE("as long as it is there") { it.farewell(1); }
  it.undrain("0-1");
  CHECK(it.reason(0) == "up");
  CHECK(it.reason(1) == "up");
}

TEST_CASE("health and scheduled drains leave each other alone") {
  Ward ward(HealthReturn::automatic);
  ward.hello(1);
  const auto schedule = [&](std::optional<double> from, std::optional<double> until) {
    module::DrainCommand command{{"power"}, "1", module::DrainMode::none};
    if (from) command.from = wall_time(ward.now + *from);
    if (until) command.until = wall_time(ward.now + *until);
    (void)ward.step(module::Command(command), module::ByUser{7});
  };
  const auto tick_after = [&](double seconds) {
    ward.now += seconds;
    return ward.step(Tick{});
  };
  SUBCASE("a return to health does not cancel what is scheduled") {
    schedule(100, std::nullopt);
    (void)ward.check(1, 1, "disk");
    (void)ward.check(1, 0);
    CHECK(ward.reason(1) == "up");
    (void)tick_after(100);
    CHECK(ward.reason(1) == "power");
  }
  SUBCASE("a drain for ill health becomes the scheduled one, and a return to health does not end it") {
    schedule(100, 200);
    (void)ward.check(1, 1, "disk");
    (void)tick_after(100);
    CHECK(ward.reason(1) == "power");
    CHECK(ward.drained_by(1) == module::Actor(module::ByUser{7}));
    (void)ward.check(1, 0);
    CHECK(ward.reason(1) == "power");
    (void)tick_after(100);
    CHECK(ward.reason(1) == "up");
  }
  SUBCASE("the end of a drain leaves a node drained that is unhealthy by then") {
    (void)ward.check(1, 0);
    schedule(std::nullopt, 100);
    (void)ward.check(1, 1, "disk");
    CHECK(ward.reason(1) == "power");
    const Effects end = tick_after(100);
    CHECK(ward.reason(1) == "health: disk");
    CHECK(ward.drained_by(1) == module::Actor(module::ByHost{"n1"}));
    CHECK(end.updates.empty());
    CHECK_FALSE(ward.engine.next_due(wall_time(ward.now)));
    (void)ward.check(1, 0);
    CHECK(ward.reason(1) == "up");
  }
  SUBCASE("an undrain that keeps what is scheduled leaves an unhealthy node drained") {
    (void)ward.check(1, 0);
    (void)ward.step(module::Command(module::DrainCommand{{"rolling"}, "1"}), module::ByUser{7});
    (void)ward.check(1, 1, "disk");
    const Effects end =
        ward.step(module::Command(module::UndrainCommand{"1", {}, {}, true, "rolling"}), module::ByUser{7});
    CHECK(ward.reason(1) == "health: disk");
    CHECK(ward.drained_by(1) == module::Actor(module::ByHost{"n1"}));
    CHECK(end.updates.empty());
    // An operator's undrain returns the node.
    (void)ward.step(module::Command(module::UndrainCommand{"1", {}, {}}), module::ByUser{7});
    CHECK(ward.reason(1) == "up");
  }
  SUBCASE("a drain with an end takes one for ill health over, end included") {
    (void)ward.check(1, 1, "disk");
    module::DrainCommand command{{"power"}, "1", module::DrainMode::update};
    command.until = wall_time(ward.now + 50);
    (void)ward.step(module::Command(command), module::ByUser{7});
    CHECK(ward.engine.next_due(wall_time(ward.now)) == command.until);
  }
}

}  // namespace
}  // namespace resourced::engine::health_tests

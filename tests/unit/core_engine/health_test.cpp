// Health of nodes as inputs of the engine: the drains and undrains that follow from checks and from silence,
// and the gate.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "core/engine/engine.hpp"
#include "core/error.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::engine {

using nodes::HealthReturn;
using text::IdSet;

namespace {

std::shared_ptr<const rset::ResourceSet> some_hosts(const char* hosts) {
  text::Hostlist nodelist = text::Hostlist::parse(hosts);
  const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(nodelist.size() - 1));
  return std::make_shared<const rset::ResourceSet>(
      std::vector<rset::ResourceGroup>{{ranks, IdSet{0}, IdSet{}}}, std::move(nodelist));
}

nodes::Settings health_settings(HealthReturn on_return, bool gate = false) {
  nodes::Settings settings;
  settings.monitor.coalesce = Seconds(0);
  settings.monitor.flap_count = 2;
  settings.monitor.flap_window = Seconds(600);
  settings.monitor.drain_after = Seconds(300);
  settings.health = {on_return, gate};
  settings.expect_all = true;
  return settings;
}

/// An engine with the nodes n0 to n3. Agent N speaks for rank N.
struct Ward {
  Engine engine;
  nodes::Settings settings;
  double now = 1000;

  explicit Ward(HealthReturn on_return, bool gate = false, std::vector<module::RecordedDrain> drains = {},
                const IdSet& exclude = {})
      : settings(health_settings(on_return, gate)) {
    (void)step(WatchNodes{settings});
    Start start;
    start.command.inventory = some_hosts("n[0-3]");
    start.command.exclude = exclude;
    start.command.recorded.drains = std::move(drains);
    (void)step(start);
  }
  Effects step(const Input& input, std::optional<module::Actor> by = std::nullopt) {
    return engine.step(input, {wall_time(now), steady_time(now)}, std::move(by));
  }

  Effects hello(IdSet::Id rank, bool checks = true) {
    const std::string host = "n" + std::to_string(rank);
    nodes::NodeReport report{host, host, IdSet{0}, {}, {}};
    report.health = checks;
    if (const auto agent = agent_of_[rank]) (void)step(AgentEnd{agent, nodes::Nodes::End::lost});
    agent_of_[rank] = ++last_;
    Effects effects = step(AgentHello{last_, 1, report});
    (void)step(Tick{});
    return effects;
  }
  Effects check(IdSet::Id rank, std::int64_t status, const std::string& reason = "") {
    return step(AgentHealth{agent_of_[rank], {status, reason}});
  }
  void farewell(IdSet::Id rank) {
    (void)step(AgentEnd{std::exchange(agent_of_[rank], 0), nodes::Nodes::End::farewell});
    (void)step(Tick{});
  }
  void drain(const std::string& target, std::optional<std::string> reason,
             module::DrainMode mode = module::DrainMode::none) {
    (void)step(module::Command{module::DrainCommand{target, std::move(reason), mode}}, module::ByUser{7});
  }
  void undrain(const std::string& target) {
    (void)step(module::Command{module::UndrainCommand{target, std::nullopt, module::DrainMode::none}});
  }
  /// The time passes, with all that becomes due.
  Effects pass(double seconds) {
    Effects all;
    const double end = now + seconds;
    while (engine.next_deadline() && to_number(*engine.next_deadline()) <= end) {
      now = std::max(now, to_number(*engine.next_deadline()));
      Effects effects = step(Tick{});
      all.without_checks.append(effects.without_checks);
    }
    now = end;
    return all;
  }

  [[nodiscard]] std::string reason(IdSet::Id rank) const {
    const auto* drain = engine.module().drains().find(rank);
    if (drain == nullptr) return "up";
    return drain->reason.value_or("no reason");
  }
  [[nodiscard]] std::optional<module::Actor> drained_by(IdSet::Id rank) const {
    return engine.module().drains().find(rank)->by;
  }
  [[nodiscard]] std::string online() const { return engine.module().online().encode(); }
  [[nodiscard]] std::string unchecked() const { return engine.nodes().health().unchecked().encode(); }

 private:
  nodes::AgentId agent_of_[4] = {};
  nodes::AgentId last_ = 0;
};

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
  // A second complaint does not replace the reason of the first.
  CHECK(it.check(1, 1, "and the clock is wrong").records.empty());
  CHECK(it.reason(1) == "health: disk /scratch is full");
  CHECK(it.check(1, 0).records.empty());  // an operator undrains it
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

TEST_CASE("a node that an operator undrains stays up until the reason changes or a check passes") {
  Ward it(HealthReturn::manual);
  (void)it.hello(0);
  (void)it.check(0, 1, "bad memory");
  it.undrain("0");
  (void)it.check(0, 1, "bad memory");
  (void)it.hello(0);  // the agent has reconnected, and tells the same again
  (void)it.check(0, 1, "bad memory");
  CHECK(it.reason(0) == "up");
  CHECK(it.unchecked() == "0");
  (void)it.check(0, 1, "bad disk");
  CHECK(it.reason(0) == "health: bad disk");
  it.undrain("0");
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
  (void)it.pass(1000);  // 2 and 3 are silent
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
          {{{"n0", 0}, wall_time(10), "health: bad", module::ByHost{"n0"}},
           {{"n1", 0}, wall_time(10), "health: bad", module::ByHost{"n1"}},
           {{"n2", 0}, wall_time(10), "health: bad", module::ByHost{"n1"}}});
  (void)it.hello(2);
  (void)it.check(2, 0);
  CHECK(it.reason(2) == "health: bad");  // that of another host's agent
  (void)it.hello(0);
  (void)it.hello(1, false);  // runs no checks any more
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

TEST_CASE("with health-gate a node stays down until its first check passes") {
  Ward it(HealthReturn::manual, true);
  Effects hello = it.hello(0);
  CHECK_FALSE(hello.agents.at(0).gated);
  CHECK(it.online().empty());
  CHECK(it.unchecked() == "0");
  (void)it.check(0, 1, "bad");
  CHECK(it.online().empty());
  CHECK(it.reason(0) == "health: bad");
  (void)it.check(0, 0);
  CHECK(it.online() == "0");
  // A check that fails later drains the node, which stays online.
  (void)it.check(0, 1, "worse");
  CHECK(it.online() == "0");

  // A lost connection within the grace time is no new start for the gate.
  (void)it.check(0, 0);
  (void)it.hello(0);
  CHECK(it.online() == "0");
  CHECK(it.unchecked() == "0");
  it.farewell(0);
  CHECK(it.online().empty());
  (void)it.hello(0);
  CHECK(it.online().empty());
  (void)it.check(0, 0);
  CHECK(it.online() == "0");
}

TEST_CASE("a check that passes before the node is online opens the gate too") {
  Ward it(HealthReturn::manual, true);
  it.settings.monitor.coalesce = Seconds(5);
  (void)it.step(WatchNodes{it.settings});
  (void)it.hello(0);
  (void)it.check(0, 0);
  CHECK(it.online().empty());
  (void)it.pass(5);
  CHECK(it.online() == "0");
}

TEST_CASE("with health-gate a node whose agent runs no checks stays down, and its agent is told") {
  Ward it(HealthReturn::manual, true);
  it.settings.monitor.coalesce = Seconds(1);
  (void)it.step(WatchNodes{it.settings});
  CHECK(it.hello(3, false).agents.at(0).gated);
  CHECK(it.pass(1).without_checks.encode() == "n3");
  CHECK(it.online().empty());
  CHECK(it.unchecked().empty());

  it.settings.health.gate = false;
  (void)it.step(WatchNodes{it.settings});
  CHECK(it.online() == "3");
  // A gate that is set again leaves nodes up that are.
  it.settings.health.gate = true;
  (void)it.step(WatchNodes{it.settings});
  CHECK(it.online() == "3");
}

TEST_CASE("a node that the gate keeps down is neither lost nor silent, but torpid where its agent is") {
  Ward it(HealthReturn::manual, true);
  it.settings.monitor.lost_after = Seconds(200);
  (void)it.step(WatchNodes{it.settings});
  for (const IdSet::Id rank : {0U, 1U, 2U, 3U}) (void)it.hello(rank, true);
  (void)it.pass(20);
  (void)it.check(0, 1, "bad");
  (void)it.pass(25);  // n1 is torpid after 30 s
  CHECK(it.online().empty());
  (void)it.check(1, 0);
  CHECK(it.online() == "1");
  CHECK(it.engine.module().torpid().encode() == "1");
  (void)it.step(Tick{});
  CHECK(it.engine.module().torpid().empty());
  CHECK(it.engine.module().inventory().ranks().encode() == "0-3");
}

TEST_CASE("drain-lost drains nodes that have been torpid or offline for so long") {
  Ward it(HealthReturn::manual);
  (void)it.hello(0);
  (void)it.hello(1);
  it.now = 1010;
  it.farewell(1);
  // n0 is silent from 1000 on, torpid from 1030, offline from 1120: overdue at 1330.
  (void)it.pass(299);
  CHECK(it.reason(1) == "up");
  (void)it.pass(1);
  CHECK(it.reason(1) == "lost: silent since 1970-01-01T00:16:50Z");
  CHECK(it.reason(0) == "up");
  (void)it.pass(20);
  CHECK(it.reason(0) == "lost: silent since 1970-01-01T00:16:40Z");
  // Targets that have not been heard since the start are silent since then.
  CHECK(it.reason(2) == "lost: silent since 1970-01-01T00:16:40Z");
  CHECK(it.engine.module().drains().groups().size() == 3);

  // Drained once: an operator who undrains it is not contradicted before it is heard again.
  it.undrain("0");
  (void)it.pass(5000);
  CHECK(it.reason(0) == "up");
  (void)it.hello(0);
  it.farewell(0);
  (void)it.pass(300);
  CHECK(it.reason(0) == "lost: silent since 1970-01-01T01:45:30Z");
  // manual: it stays drained when it is heard.
  (void)it.hello(0);
  CHECK(it.reason(0).starts_with("lost: "));
}

TEST_CASE("drain-lost leaves other drains and excluded nodes alone") {
  Ward it(HealthReturn::automatic, false, {}, IdSet{3});
  it.drain("0", "maintenance");
  it.drain("1", std::nullopt);
  (void)it.pass(1000);
  CHECK(it.reason(0) == "maintenance");
  CHECK(it.reason(1) == "no reason");
  CHECK(it.reason(2) == "lost: silent since 1970-01-01T00:16:40Z");
  CHECK(it.reason(3) == "up");
}

TEST_CASE("with health-return auto a silent node returns when it is heard, or when its check passes") {
  Ward it(HealthReturn::automatic);
  (void)it.pass(1000);
  CHECK(it.reason(0).starts_with("lost: "));
  (void)it.hello(0, false);
  CHECK(it.reason(0) == "up");
  (void)it.hello(1);
  CHECK(it.reason(1).starts_with("lost: "));
  (void)it.check(1, 1, "bad");
  CHECK(it.reason(1).starts_with("lost: "));
  (void)it.check(1, 0);
  CHECK(it.reason(1) == "up");

  // A torpid node that beats again.
  it.settings.monitor.offline_after = forever;
  (void)it.step(WatchNodes{it.settings});
  (void)it.pass(330);
  CHECK(it.engine.module().torpid().contains(1));
  CHECK(it.reason(1).starts_with("lost: "));
  (void)it.check(1, 0);
  CHECK(it.reason(1) == "up");
}

TEST_CASE("drain-lost set by a reload counts from then for nodes that were not watched") {
  Ward it(HealthReturn::manual);
  it.settings.monitor.drain_after = forever;
  (void)it.step(WatchNodes{it.settings});
  (void)it.pass(1000);
  CHECK(it.reason(0) == "up");
  it.settings.monitor.drain_after = Seconds(2000);
  (void)it.step(WatchNodes{it.settings});
  (void)it.pass(999);
  CHECK(it.reason(0) == "up");
  (void)it.pass(1);
  CHECK(it.reason(0) == "lost: silent since 1970-01-01T00:16:40Z");
}

TEST_CASE("targets that leave, or another inventory, leave no health behind") {
  Ward it(HealthReturn::manual);
  for (const IdSet::Id rank : {0U, 1U}) (void)it.hello(rank);
  (void)it.step(module::Command{module::ShrinkCommand{"0"}});
  CHECK(it.unchecked() == "1");
  Load load;
  load.command.inventory = some_hosts("n[0-1]");
  (void)it.step(load);
  CHECK(it.unchecked().empty());
}

}  // namespace
TEST_CASE("health and scheduled drains leave each other alone") {
  Ward ward(HealthReturn::automatic);
  ward.hello(1);
  const auto schedule = [&](std::optional<double> from, std::optional<double> until) {
    module::DrainCommand command{"1", "power", module::DrainMode::none};
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
    CHECK_FALSE(ward.engine.next_due());
    (void)ward.check(1, 0);
    CHECK(ward.reason(1) == "up");
  }
  SUBCASE("a drain with an end takes one for ill health over, end included") {
    (void)ward.check(1, 1, "disk");
    module::DrainCommand command{"1", "power", module::DrainMode::update};
    command.until = wall_time(ward.now + 50);
    (void)ward.step(module::Command(command), module::ByUser{7});
    CHECK(ward.engine.next_due() == command.until);
  }
}

}  // namespace resourced::engine

// Two agents that run at the same time and say that they are the same host, as those of a cloned image do.
#include <doctest/doctest.h>

#include "health_ward.hpp"

namespace resourced::engine::health_tests {
namespace {

using nodes::Rivals;

/// Two agents that say hello as n1: the healthy one on connection 1, the unhealthy one on connection 2.
struct TwoOfOneName : Ward {
  explicit TwoOfOneName(HealthReturn on_return = HealthReturn::automatic, bool gate = false)
      : Ward(on_return, gate) {}

  Effects turn(nodes::ConnectionId connection) {
    return turn(connection, connection == 2 ? sick : nodes::HealthReport{});
  }
  Effects turn(nodes::ConnectionId connection, const std::optional<nodes::HealthReport>& health) {
    nodes::NodeReport report{"n1", "n1", IdSet{0}, {}, {}};
    report.health = true;
    Effects effects = step(
        AgentHello{++agent_, connection, report, connection == 1 ? "10.0.0.1 (key a)" : "10.0.0.2 (key a)"});
    if (health) (void)step(AgentHealth{agent_, *health});
    (void)step(Tick{});
    return effects;
  }
  /// Lets the agent that said hello last beat for this time.
  void beat_for(double seconds) {
    for (const double end = now + seconds; now < end;) {
      (void)step(AgentBeat{agent_});
      (void)pass(std::min(5.0, end - now));
    }
  }
  std::string rivals() {
    const auto origins = engine.nodes().rivals().origins();
    return origins.contains(1) ? origins.at(1) : "";
  }
  nodes::HealthReport sick{1, "disk is full"};

 private:
  nodes::AgentId agent_ = 100;
};

TEST_CASE("an agent that comes back to the place that it lost shows that two live, and both are named") {
  TwoOfOneName it;
  CHECK(it.turn(1).rivalries.empty());
  CHECK(it.turn(2).rivalries.empty());
  CHECK(it.rivals().empty());
  const Effects effects = it.turn(1);
  REQUIRE(effects.rivalries.size() == 1);
  CHECK(effects.rivalries[0].host == "n1");
  CHECK(effects.rivalries[0].origins == "10.0.0.2 (key a) and 10.0.0.1 (key a)");
  CHECK(it.rivals() == "10.0.0.2 (key a) and 10.0.0.1 (key a)");
  // The log names the rivals once.
  CHECK(it.turn(2).rivalries.empty());
  CHECK(it.rivals() == "10.0.0.1 (key a) and 10.0.0.2 (key a)");
}

TEST_CASE("the well one of two rivals does not return what the sick one has drained") {
  TwoOfOneName it;
  (void)it.turn(1);
  (void)it.turn(2);
  CHECK(it.reason(1) == "health: disk is full");
  for (int i = 0; i < 3; ++i) {
    (void)it.turn(1);
    CHECK(it.reason(1) == "health: disk is full");
    (void)it.turn(2);
  }
  SUBCASE("until the sick one is gone for long enough") {
    (void)it.turn(1);
    it.beat_for(to_number(Rivals::apart) - 5);
    CHECK(it.reason(1) == "health: disk is full");
    it.beat_for(10);
    CHECK(it.rivals().empty());
    CHECK(it.reason(1) == "up");
  }
  SUBCASE("and if the sick one remains, the node stays drained") {
    (void)it.pass(to_number(Rivals::apart) + 1);
    CHECK(it.rivals().empty());
    CHECK(it.reason(1) == "health: disk is full");
  }
  SUBCASE("nor do new settings return it") {
    (void)it.turn(1);
    (void)it.step(WatchNodes{it.settings});
    CHECK(it.reason(1) == "health: disk is full");
  }
}

TEST_CASE("the gate stays shut for rivals") {
  TwoOfOneName it(HealthReturn::manual, true);
  it.sick = {1, "no route"};
  (void)it.turn(2);
  CHECK(it.online() == "");
  it.undrain("1");
  const nodes::HealthReport well;
  (void)it.turn(3, std::nullopt);
  (void)it.turn(2);
  (void)it.turn(3, well);
  CHECK(it.online() == "");
  it.beat_for(to_number(Rivals::apart) + 5);
  CHECK(it.online() == "1");
}

TEST_CASE("neither a restarted agent nor one that says hello again on its connection is a rival") {
  TwoOfOneName it;
  for (nodes::ConnectionId connection = 1; connection < 10; ++connection) {
    CHECK(it.turn(connection).rivalries.empty());
    CHECK(it.turn(connection).rivalries.empty());
  }
  CHECK(it.rivals().empty());
}

TEST_CASE("a target that leaves takes its rivals along") {
  TwoOfOneName it;
  (void)it.turn(1);
  (void)it.turn(2);
  (void)it.turn(1);
  (void)it.step(module::Command{module::ShrinkCommand{"1"}});
  CHECK(it.rivals().empty());
  CHECK(it.pass(to_number(Rivals::apart) + 1).rivalries.empty());
}

}  // namespace
}  // namespace resourced::engine::health_tests

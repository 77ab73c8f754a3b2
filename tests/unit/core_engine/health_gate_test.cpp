// Nodes that are unchecked or silent, as inputs of the engine: the gate, and the drains of silent nodes.
#include <doctest/doctest.h>

#include "health_ward.hpp"

namespace resourced::engine::health_tests {
namespace {

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

  // A node whose connection was lost within the grace time need not pass the gate again.
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

TEST_CASE("a check that was under way when a node fell once too often does not return it") {
  const std::string flapping = "flapping: offline more than 2 times within 10m";
  SUBCASE("where the gate keeps it down") {
    Ward it(HealthReturn::automatic, true);
    for (int i = 0; i < 2; ++i) {
      (void)it.hello(0);
      (void)it.check(0, 0);
      it.farewell(0);
    }
    (void)it.hello(0);
    CHECK(it.online().empty());
    it.settings.monitor.coalesce = Seconds(1);
    (void)it.step(WatchNodes{it.settings});
    (void)it.pass(120.5);  // n0 falls silent, and offline a moment later
    const Effects late = it.check(0, 0);
    CHECK(it.reason(0) == flapping);
    CHECK_FALSE(it.engine.module().available().contains(0));
    CHECK(it.online() == "0");
    (void)it.pass(1);
    CHECK(it.reason(0) == flapping);
  }
  SUBCASE("where it is drained for its health") {
    Ward it(HealthReturn::automatic);
    (void)it.hello(0);
    (void)it.check(0, 1, "bad");
    for (int i = 0; i < 3; ++i) {
      it.farewell(0);
      (void)it.hello(0);
    }
    CHECK(it.reason(0) == flapping);
    (void)it.check(0, 0);
    CHECK(it.reason(0) == flapping);
  }
  SUBCASE("where it is drained for its silence") {
    Ward it(HealthReturn::automatic);
    it.settings.monitor.flap_window = Seconds(10000);
    it.settings.monitor.drain_after = Seconds(5);
    (void)it.step(WatchNodes{it.settings});
    for (int i = 0; i < 3; ++i) {
      (void)it.hello(0, false);
      CHECK(it.reason(0) == "up");
      it.farewell(0);
      (void)it.pass(i < 2 ? 5 : 0);
    }
    CHECK(it.reason(0).starts_with("flapping: "));
    (void)it.hello(0, false);
    CHECK(it.reason(0).starts_with("flapping: "));
  }
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
  // A gate that is turned on again does not take down nodes that are up.
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
  (void)it.pass(25);  // n1 becomes torpid after 30 s of silence
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
  // n0 is silent from 1000 on, torpid from 1030, offline from 1120, and due for a drain at 1330.
  (void)it.pass(299);
  CHECK(it.reason(1) == "up");
  (void)it.pass(1);
  CHECK(it.reason(1) == "lost: silent since 1970-01-01T00:16:50Z");
  CHECK(it.reason(0) == "up");
  (void)it.pass(20);
  CHECK(it.reason(0) == "lost: silent since 1970-01-01T00:16:40Z");
  // Targets that were not heard since the start count as silent since then.
  CHECK(it.reason(2) == "lost: silent since 1970-01-01T00:16:40Z");
  CHECK(it.engine.module().drains().groups().size() == 3);

  // A silent node is drained once: after an operator's undrain, not again before it was heard.
  it.undrain("0");
  (void)it.pass(5000);
  CHECK(it.reason(0) == "up");
  (void)it.hello(0);
  it.farewell(0);
  (void)it.pass(300);
  CHECK(it.reason(0) == "lost: silent since 1970-01-01T01:45:30Z");
  // With health-return manual the node stays drained when it is heard again.
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

  // n1 becomes torpid, and beats again.
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

}  // namespace
}  // namespace resourced::engine::health_tests

// Messages of node agents and of the enclosing instance as inputs of the engine: the resulting events and
// updates.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "core/engine/engine.hpp"
#include "core/error.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::engine {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

const IdSet four_cores = IdSet::range(0, 3);

std::shared_ptr<const ResourceSet> hosts_of_four_cores(std::string_view hosts) {
  Hostlist nodelist = Hostlist::parse(hosts);
  const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(nodelist.size() - 1));
  return std::make_shared<const ResourceSet>(std::vector<rset::ResourceGroup>{{ranks, four_cores, IdSet{}}},
                                             std::move(nodelist));
}

nodes::NodeReport report(const std::string& host, const IdSet& cores = four_cores) {
  return {host, host, cores, {}, {}};
}

nodes::Settings settings() {
  nodes::Settings settings;
  settings.monitor.coalesce = Seconds(0);
  return settings;
}

/// An engine that watches agents; its log as names and ranks of events.
struct Watching {
  Engine engine;
  std::vector<std::string> log;

  /// Starts with these hosts; without any, there is no inventory yet.
  explicit Watching(std::string_view hosts = "") {
    (void)step(WatchNodes{settings()}, 0);
    if (!hosts.empty()) (void)start(hosts, {});
    log.clear();
  }
  Effects start(std::string_view hosts, const IdSet& exclude) {
    Start input;
    input.command.inventory = hosts_of_four_cores(hosts);
    input.command.exclude = exclude;
    return step(input, 1);
  }
  Effects step(const Input& input, double now) {
    Effects effects = engine.step(input, {wall_time(now), steady_time(now)});
    for (const Record& record : effects.records) {
      const auto& body = record.event.body;
      log.push_back((std::holds_alternative<module::OnlineEvent>(body)    ? "online "
                     : std::holds_alternative<module::OfflineEvent>(body) ? "offline "
                     : std::holds_alternative<module::DrainEvent>(body)   ? "drain "
                     : updates_inventory(body)                            ? "update "
                                                                          : "other ") +
                    record.ranks.encode());
    }
    return effects;
  }
  std::vector<std::string> take_log() { return std::exchange(log, {}); }
};

using Log = std::vector<std::string>;

TEST_CASE("a target is online when its agent has said hello, and offline when it says farewell") {
  Watching it("n[0-3]");
  const Effects effects = it.step(AgentHello{7, 1, report("n2")}, 10);
  REQUIRE(effects.agents.size() == 1);
  CHECK(effects.agents[0].agent == 7);
  CHECK(effects.agents[0].rank == 2);
  CHECK_FALSE(effects.agents[0].end);
  // The event is delayed until the engine is told that time has passed.
  CHECK(it.take_log().empty());
  REQUIRE(it.engine.next_deadline());
  (void)it.step(Tick{}, 10);
  CHECK(it.take_log() == Log{"online 2"});
  CHECK(it.step(Acquire{1, {}}, 10).acquired->resources == IdSet::range(0, 3));

  (void)it.step(AgentEnd{7, nodes::Nodes::End::farewell}, 20);
  const Effects after = it.step(Tick{}, 20);
  CHECK(it.take_log() == Log{"offline 2"});
  REQUIRE(after.updates.size() == 1);
  CHECK(after.updates[0].delta.down == IdSet{2});
}

TEST_CASE("an agent that falls silent takes its target offline, and beats keep it") {
  Watching it("n[0-1]");
  (void)it.step(AgentHello{1, 1, report("n0")}, 10);
  (void)it.step(AgentHello{2, 2, report("n1")}, 10);
  (void)it.step(Tick{}, 10);
  it.take_log();
  for (double now = 20; now <= 200; now += 10) {
    (void)it.step(AgentBeat{2}, now);
    (void)it.step(Tick{}, now);
  }
  CHECK(it.take_log() == Log{"other 0", "offline 0"});
}

TEST_CASE("the later agent of a host takes the place of the earlier one") {
  Watching it("n[0-1]");
  (void)it.step(AgentHello{1, 1, report("n0")}, 10);
  const Effects effects = it.step(AgentHello{2, 2, report("n0")}, 11);
  REQUIRE(effects.agents.size() == 2);
  CHECK(effects.agents[0].agent == 1);
  REQUIRE(effects.agents[0].end);
  CHECK(effects.agents[0].end->errnum() == EEXIST);
  CHECK(effects.agents[1].agent == 2);
  CHECK(effects.agents[1].rank == 0);
  // The end of the replaced agent has no effect.
  (void)it.step(AgentEnd{1, nodes::Nodes::End::farewell}, 12);
  (void)it.step(Tick{}, 12);
  CHECK(it.take_log() == Log{"online 0"});
}

TEST_CASE("a hello is refused where agents are not watched, and for a host that is not there") {
  Watching it("n[0-1]");
  int errnum = 0;
  try {
    (void)it.step(AgentHello{1, 1, report("n9")}, 10);
  } catch (const Error& error) {
    errnum = error.errnum();
  }
  CHECK(errnum == EINVAL);
  // The refused hello leaves no state: the same agent may join.
  CHECK(it.step(AgentHello{1, 1, report("n1")}, 11).agents[0].rank == 1);

  Engine not_watching;
  CHECK_THROWS_WITH_AS(
      (void)not_watching.step(AgentHello{1, 1, report("n0")}, {wall_time(1), steady_time(1)}),
      "this daemon takes no node agents (monitor.mode is static)", Error);
}

TEST_CASE("the agent of a target that leaves for good is told so") {
  Watching it("n[0-3]");
  (void)it.step(AgentHello{5, 1, report("n2")}, 10);
  const Effects effects = it.step(module::ShrinkCommand{"1-2"}, 11);
  REQUIRE(effects.agents.size() == 1);
  CHECK(effects.agents[0].agent == 5);
  REQUIRE(effects.agents[0].end);
  CHECK(effects.agents[0].end->errnum() == EINVAL);
}

TEST_CASE("when another R is loaded, all agents are to say hello again") {
  Watching it("n[0-1]");
  (void)it.step(AgentHello{1, 1, report("n0")}, 10);
  (void)it.step(AgentHello{2, 1, report("n1")}, 10);
  (void)it.step(Tick{}, 10);
  module::DefineCommand load;
  load.inventory = hosts_of_four_cores("n[1-2]");
  const Effects effects = it.step(load, 11);
  REQUIRE(effects.agents.size() == 2);
  for (const nodes::AgentNews& news : effects.agents) CHECK(news.end->errnum() == EAGAIN);
  CHECK(it.step(AgentHello{3, 1, report("n2")}, 12).agents[0].rank == 1);
}

TEST_CASE("a node that is not what the inventory says is drained before its agent is answered") {
  Watching it("n[0-3]");
  const Effects effects = it.step(AgentHello{1, 1, report("n3", IdSet::range(0, 1))}, 10);
  CHECK(it.take_log() == Log{"drain 3"});
  REQUIRE(effects.unfit.size() == 1);
  CHECK(effects.unfit[0].host == "n3");
  CHECK(effects.unfit[0].reason == "missing resources: core[2-3]");
  CHECK(effects.agents.back().rank == 3);
}

TEST_CASE("an excluded node is held against the inventory when it is no longer excluded") {
  Watching it;
  (void)it.start("n[0-3]", IdSet{3});
  it.take_log();
  (void)it.step(AgentHello{1, 1, report("n3", IdSet::range(0, 1))}, 10);
  CHECK(it.take_log().empty());
  const Effects effects = it.step(module::ReloadCommand{}, 11);
  REQUIRE(effects.unfit.size() == 1);
  CHECK(effects.unfit[0].rank == 3);
  const Log log = it.take_log();
  CHECK(std::ranges::find(log, "drain 3") != log.end());
}

TEST_CASE("agents tell the inventory, and get their ranks with the start that follows") {
  Watching it;
  (void)it.step(Discover{{.size = 2}, {}}, 1);
  const Effects first = it.step(AgentHello{1, 1, report("b")}, 2);
  CHECK_FALSE(first.discovered);
  REQUIRE(first.agents.size() == 1);
  CHECK_FALSE(first.agents[0].rank);
  CHECK_THROWS_AS((void)it.step(module::DrainCommand{{}, "0", {}}, 2), Error);

  const Effects second = it.step(AgentHello{2, 2, report("a")}, 3);
  REQUIRE(second.discovered);
  CHECK(second.discovered->nodelist().encode() == "a,b");
  Start start;
  start.command.inventory = std::make_shared<const ResourceSet>(*second.discovered);
  const Effects begun = it.step(start, 3);
  REQUIRE(begun.agents.size() == 2);
  CHECK(begun.agents[0].agent == 1);
  CHECK(begun.agents[0].rank == 1);
  CHECK(begun.agents[1].agent == 2);
  CHECK(begun.agents[1].rank == 0);
  it.take_log();
  (void)it.step(Tick{}, 4);
  CHECK(it.take_log() == Log{"online 0-1"});
}

TEST_CASE("the discovery does not wait for excluded hosts, and ends with its time") {
  SUBCASE("hosts that are not waited for") {
    Watching it;
    (void)it.step(Discover{{.size = 3}, {}}, 1);
    (void)it.step(AgentHello{1, 1, report("a")}, 2);
    CHECK(it.step(DiscoverWithout{Hostlist::parse("x,y")}, 3).discovered);
  }
  SUBCASE("time") {
    Watching it;
    (void)it.step(Discover{{.size = 3, .timeout = Seconds(30)}, {}}, 1);
    (void)it.step(AgentHello{1, 1, report("a")}, 2);
    REQUIRE(it.engine.next_deadline());
    CHECK(*it.engine.next_deadline() == steady_time(31));
    CHECK_FALSE(it.step(Tick{}, 30).discovered);
    CHECK(it.step(Tick{}, 31).discovered);
  }
}

TEST_CASE("targets that are forced down stay so until their agents say hello again") {
  Watching it("n[0-3]");
  (void)it.step(AgentHello{1, 1, report("n0")}, 10);
  (void)it.step(Tick{}, 10);
  it.take_log();
  (void)it.step(ForceDown{IdSet::range(0, 1)}, 11);
  CHECK(it.take_log() == Log{"offline 0"});
  (void)it.step(AgentBeat{1}, 12);
  (void)it.step(Tick{}, 12);
  CHECK(it.take_log().empty());
  CHECK_THROWS_WITH_AS((void)it.step(ForceDown{IdSet{4}}, 13), "idset is out of range", Error);
}

TEST_CASE(
    "an expiration of the enclosing instance counts, although it has passed when the word of it comes") {
  Watching it("n[0-1]");
  (void)it.step(Enclose{}, 2);
  nodes::ParentChange change;
  change.expiration = wall_time(40);
  change.expiration_set = wall_time(90);
  (void)it.step(ParentSays{change}, 100);
  CHECK(it.engine.module().inventory().expiration() == wall_time(40));
  CHECK_THROWS_WITH_AS((void)it.step(SetExpiration{{wall_time(50)}}, 100),
                       "expiration 50 is in the past: give a time ahead, or 0 for none", Error);
}

TEST_CASE("a target is online if its agent and the enclosing instance say so") {
  Watching it("n[0-1]");
  (void)it.step(Enclose{}, 2);
  nodes::ParentChange down;
  down.down = IdSet{0};
  (void)it.step(ParentSays{down}, 3);
  (void)it.step(AgentHello{1, 1, report("n0")}, 4);
  (void)it.step(AgentHello{2, 1, report("n1")}, 4);
  (void)it.step(Tick{}, 4);
  CHECK(it.take_log() == Log{"online 1"});
  nodes::ParentChange up;
  up.up = IdSet{0};
  (void)it.step(ParentSays{up}, 5);
  CHECK(it.take_log() == Log{"online 0"});
}

TEST_CASE("a removed target that returns is online only if the enclosing instance says so") {
  Watching it("n[0-3]");
  (void)it.step(Enclose{}, 2);
  (void)it.step(module::ShrinkCommand{"0-1"}, 3);
  nodes::ParentChange change;
  change.down = IdSet{0};
  change.shrink = IdSet{2};
  (void)it.step(ParentSays{change}, 4);
  (void)it.step(module::UnshrinkCommand{"0-2"}, 5);
  it.take_log();
  module::ReloadCommand reload;
  reload.online = IdSet::range(0, 3);
  (void)it.step(reload, 6);
  CHECK(it.engine.module().inventory().ranks() == IdSet::range(0, 3));
  CHECK(it.engine.module().online() == IdSet{1});
  nodes::ParentChange up;
  up.up = IdSet{0};
  (void)it.step(ParentSays{up}, 7);
  CHECK(it.engine.module().online() == IdSet{0, 1});
}

TEST_CASE("of the expirations of this instance and the enclosing one the later holds") {
  Watching it("n[0-1]");
  (void)it.step(Enclose{}, 2);
  const auto expiration = [&] { return it.engine.module().inventory().expiration(); };
  nodes::ParentChange change;
  change.expiration = wall_time(5000);
  change.expiration_set = wall_time(10);
  (void)it.step(ParentSays{change}, 11);
  CHECK(expiration() == wall_time(5000));
  (void)it.step(SetExpiration{{wall_time(4000)}}, 20);
  CHECK(expiration() == wall_time(4000));
  change.expiration = wall_time(6000);
  change.expiration_set = wall_time(19);
  (void)it.step(ParentSays{change}, 21);
  CHECK(expiration() == wall_time(4000));
  change.expiration_set = wall_time(22);
  (void)it.step(ParentSays{change}, 23);
  CHECK(expiration() == wall_time(6000));
}

}  // namespace
}  // namespace resourced::engine

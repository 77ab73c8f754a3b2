// One step: its effects in their order, and no effects if the step is refused.
#include "core/engine/engine.hpp"

#include <memory>

#include <doctest/doctest.h>

#include "core/constraint/query.hpp"
#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "fold.hpp"

namespace resourced::engine {

using module::DrainCommand;
using text::IdSet;

namespace {

std::shared_ptr<const rset::ResourceSet> inventory(std::string_view hosts) {
  text::Hostlist nodelist = text::Hostlist::parse(hosts);
  const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(nodelist.size() - 1));
  return std::make_shared<const rset::ResourceSet>(
      std::vector<rset::ResourceGroup>{{ranks, IdSet::range(0, 3), IdSet{}}}, std::move(nodelist));
}

Start start(std::string_view hosts, module::State recorded = {}) {
  Start input;
  input.command.inventory = inventory(hosts);
  input.command.online = input.command.inventory->ranks();
  input.state = std::move(recorded);
  return input;
}

/// The same time on both clocks
Now at(double seconds) { return {wall_time(seconds), steady_time(seconds)}; }

/// A started engine, and the state that its log leads to.
struct Started {
  Engine engine;
  Fold fold;

  explicit Started(std::string_view hosts) { step(start(hosts), 10); }
  Effects step(const Input& input, double now = 20) {
    Effects effects = engine.step(input, at(now));
    for (const Record& record : effects.records) fold.apply(record);
    return effects;
  }
};

TEST_CASE("a start leaves its events as records, numbered from 1") {
  Engine engine;
  const Effects effects = engine.step(start("n[0-3]"), at(10));
  REQUIRE(effects.records.size() == 2);
  CHECK(std::holds_alternative<module::RestartEvent>(effects.records[0].event.body));
  CHECK(std::holds_alternative<module::DefineEvent>(effects.records[1].event.body));
  CHECK(effects.records[0].sequence == 1);
  CHECK(effects.records[1].sequence == 2);
  CHECK(*effects.records[1].resources == engine.module().inventory().encode());
  CHECK(engine.applied() == 2);
  CHECK(effects.updates.empty());
}

TEST_CASE("each event of a step is by the actor of its input, and a drain keeps its actor over restarts") {
  const module::Actor user = module::ByUser{1000};
  const module::Actor key = module::ByKey{"login1"};
  Started before("n[0-3]");
  for (const Record& record : before.engine.step(DrainCommand{{"fan"}, "0-1", {}}, at(20), user).records) {
    CHECK(record.event.by == user);
    before.fold.apply(record);
  }
  // Another reason comes with the actor who gave it; the same reason changes nothing.
  for (const char* reason : {"disk", "fan"}) {
    const Effects effects =
        before.engine.step(DrainCommand{{reason}, "1", module::DrainMode::overwrite}, at(21), key);
    for (const Record& record : effects.records) before.fold.apply(record);
  }
  for (const Record& record :
       before.engine.step(DrainCommand{{"fan"}, "1", module::DrainMode::overwrite}, at(22), user).records)
    before.fold.apply(record);
  module::ReloadCommand reload;
  reload.exclude = IdSet{3};
  before.step(DrainCommand{{}, "3", {}});
  const module::Actor signal = module::BySignal{"HUP"};
  const Effects reloaded = before.engine.step(module::Command(reload), at(23), signal);
  REQUIRE(reloaded.records.size() == 2);
  for (const Record& record : reloaded.records) {
    CHECK(record.event.by == signal);
    before.fold.apply(record);
  }

  const auto by = [](const Engine& engine, IdSet::Id rank) {
    return engine.module().drains().find(rank)->by;
  };
  CHECK(by(before.engine, 0) == user);
  CHECK(by(before.engine, 1) == key);
  Engine after;
  const Effects started = after.step(start("x,n[0-3]", before.fold.state), at(100));
  for (const Record& record : started.records) CHECK_FALSE(record.event.by);
  CHECK(by(after, 1) == user);
  CHECK(by(after, 2) == key);
  CHECK(after.module().drains().find(1)->timestamp == wall_time(20));
}

// The state of n1 to n3 at the end of a daemon: drains, a scheduled drain, and properties.
Fold with_states() {
  Started before("n[0-3]");
  before.step(DrainCommand{{"fan"}, "1-2", {}});
  module::DrainCommand later{{"later"}, "3", {}};
  later.from = wall_time(1000);
  before.step(later);
  before.step(module::PropertyCommand{module::PropertyCommand::Op::add, "fast", "1-2"});
  return before.fold;
}

void check_states(const Engine& engine) {
  const module::Module& module = engine.module();
  CHECK(module.drains().ranks() == IdSet{1, 2});
  CHECK(module.drains().find(2)->timestamp == wall_time(20));
  CHECK(module.drains().find(2)->reason == "fan");
  CHECK_FALSE(module.available().contains(2));
  CHECK(module.scheduled_drains().ranks() == IdSet{3});
  CHECK(engine.next_due(wall_time(300)) == wall_time(1000));
}

TEST_CASE("a host that inventories lack for a time has its drains and properties when it returns") {
  Fold fold = with_states();
  for (const char* hosts : {"n[0-1]", "x[0-9]", "n1"}) {
    Engine other;
    for (const Record& record : other.step(start(hosts, fold.state), at(100)).records) fold.apply(record);
    CHECK(other.module().drains().ranks().count() == (std::string_view(hosts) == "x[0-9]" ? 0 : 1));
    // Events that a reload writes on a smaller inventory keep the states of absent hosts, too.
    module::ReloadCommand reload;
    reload.exclude = IdSet{0};
    if (std::string_view(hosts) == "n[0-1]")
      for (const Record& record : other.step(module::Command(reload), at(100)).records) fold.apply(record);
  }
  Engine again;
  (void)again.step(start("n[0-3]", fold.state), at(200));
  check_states(again);
  CHECK(again.module().inventory().properties().at("fast") == IdSet{1, 2});
}

TEST_CASE("a load that lacks one of several targets of a host drains no other target of the host") {
  Started it("h,h,k");
  it.step(DrainCommand{{"gpu"}, "0", {}});
  const auto load = [&](const IdSet& ranks, const char* hosts, double now) {
    module::DefineCommand input;
    input.inventory = std::make_shared<const rset::ResourceSet>(
        std::vector<rset::ResourceGroup>{{ranks, IdSet::range(0, 3), IdSet{}}}, text::Hostlist::parse(hosts));
    input.online = ranks;
    it.step(input, now);
  };
  const auto drained = [](const Engine& engine) { return engine.module().drains().ranks(); };
  SUBCASE("the other one is not drained") {
    load(IdSet::range(1, 2), "h,k", 30);
    CHECK(drained(it.engine).empty());
    CHECK(it.engine.absent().drains.size() == 1);
    // The drain of the absent target is kept over a start, too.
    Engine next;
    (void)next.step(start("h,k", it.fold.state), at(40));
    CHECK(drained(next).empty());
    load(IdSet::range(0, 2), "h,h,k", 50);
    CHECK(drained(it.engine).count() == 1);
  }
  SUBCASE("the other one has a drain of its own") {
    it.step(DrainCommand{{"fan"}, "1", {}});
    load(IdSet::range(1, 2), "h,k", 30);
    CHECK(it.engine.module().drains().find(1)->reason == "fan");
    CHECK(it.engine.absent().drains.size() == 1);
    Engine next;
    (void)next.step(start("h,h,k", it.fold.state), at(40));
    CHECK(drained(next) == IdSet::range(0, 1));
  }
}

TEST_CASE("a host that a loaded R lacks has its drains when another one has it again") {
  Fold fold = with_states();
  Engine engine;
  const auto step = [&](const Input& input, double now) {
    for (const Record& record : engine.step(input, at(now)).records) fold.apply(record);
  };
  const auto load = [&](const char* hosts, double now, const IdSet& exclude = {}) {
    module::DefineCommand input;
    input.inventory = start(hosts).command.inventory;
    input.online = input.inventory->ranks();
    input.exclude = exclude;
    step(input, now);
  };
  step(start("n[0-3]", fold.state), 100);
  load("n[0-1]", 110);
  CHECK(engine.module().drains().ranks() == IdSet{1});
  SUBCASE("loaded") {
    load("n[3,2,1,0]", 120);
    CHECK(engine.module().drains().ranks() == IdSet{1, 2});
    CHECK(engine.module().available() == IdSet{0, 3});
    CHECK(engine.module().scheduled_drains().ranks() == IdSet{0});
    load("n[0-3]", 130);
    check_states(engine);
  }
  SUBCASE("loaded after a start without it") {
    engine = Engine();
    step(start("x", fold.state), 120);
    load("n[0-3]", 130);
    check_states(engine);
  }
  SUBCASE("configured at a start") {
    engine = Engine();
    step(start("n[0-3]", fold.state), 120);
    check_states(engine);
    CHECK(engine.module().inventory().properties().at("fast") == IdSet{2});
  }
  SUBCASE("loaded and excluded") {
    load("n[0-3]", 120, IdSet{2});
    CHECK(engine.module().drains().ranks() == IdSet{1});
    load("n[0-3]", 130);
    CHECK(engine.module().drains().ranks() == IdSet{1});
  }
  // The next start leads to the same state as this daemon's.
  Engine next;
  (void)next.step(start("n[0-3]", fold.state), at(200));
  CHECK(next.module().drains().ranks() == engine.module().drains().ranks());
  CHECK(next.module().scheduled_drains().ranks() == engine.module().scheduled_drains().ranks());
}

TEST_CASE("the events that follow from an agent's hello are by its host, those of time are by nobody") {
  Engine engine;
  nodes::Settings settings;
  settings.monitor.coalesce = Seconds(0);
  (void)engine.step(WatchNodes{settings}, at(1));
  Start input = start("n[0-1]");
  input.command.online = {};
  (void)engine.step(input, at(2));
  AgentHello hello{1, 1, {"n1", "n1", IdSet{0}, {}, {}}};
  const Effects said = engine.step(hello, at(3), module::ByKey{"agents"});
  REQUIRE(said.records.size() == 1);
  CHECK(std::holds_alternative<module::DrainEvent>(said.records[0].event.body));
  CHECK(said.records[0].event.by == module::Actor(module::ByHost{"n1"}));
  CHECK(engine.module().drains().find(1)->by == module::Actor(module::ByHost{"n1"}));
  const Effects later = engine.step(Tick{}, at(3));
  REQUIRE_FALSE(later.records.empty());
  for (const Record& record : later.records) CHECK_FALSE(record.event.by);
}

TEST_CASE("the log of an earlier start is continued, in number and in time") {
  Engine engine(41, wall_time(1000));
  const Effects effects = engine.step(start("n[0-3]"), at(10));
  CHECK(effects.records.front().sequence == 42);
  CHECK(effects.records.front().event.timestamp == wall_time(1000));
}

TEST_CASE("a command before the inventory is known is refused") {
  Engine engine;
  CHECK_THROWS_WITH_AS((void)engine.step(DrainCommand{{}, "0", {}}, at(1)), "the inventory is not known yet",
                       Error);
}

TEST_CASE("a holder hears of its targets once the log has the event") {
  Started it("n[0-3]");
  const auto acquired = it.step(Acquire{7, {}}).acquired;
  REQUIRE(acquired);
  CHECK(acquired->resources == IdSet::parse("0-3"));
  const Effects effects = it.step(DrainCommand{{"dimm"}, "n[1-2]", {}});
  REQUIRE(effects.records.size() == 1);
  CHECK(effects.records[0].ranks == IdSet::parse("1-2"));
  CHECK(effects.records[0].hosts.encode() == "n[1-2]");
  REQUIRE(effects.updates.size() == 1);
  CHECK(effects.updates[0].holder == 7);
  CHECK(effects.updates[0].after == effects.records[0].sequence);
  CHECK(effects.updates[0].delta.down == IdSet::parse("1-2"));
}

TEST_CASE("a refused input changes nothing") {
  Started it("n[0-3]");
  it.step(Acquire{1, {}});
  const auto applied = it.engine.applied();
  const auto version = it.engine.module().state_version();
  CHECK_THROWS_AS(it.step(DrainCommand{{}, "n[0-9]", {}}), Error);
  CHECK_THROWS_AS(it.step(Acquire{2, {}}), Error);
  CHECK_THROWS_AS(it.step(Acquire{3, "none"}), Error);
  CHECK(it.engine.applied() == applied);
  CHECK(it.engine.module().state_version() == version);
  CHECK(it.engine.acquisition().holders() == 1);
}

TEST_CASE("a clock that is set back does not bring the log out of order") {
  Started it("n[0-3]");
  CHECK(it.step(DrainCommand{{}, "0", {}}, 500).records[0].event.timestamp == wall_time(500));
  CHECK(it.step(DrainCommand{{}, "1", {}}, 400).records[0].event.timestamp == wall_time(500));
}

TEST_CASE(
    "only events set the time that the log has reached: an input without any may come of a wrong clock") {
  Started it("n[0-3]");
  CHECK_THROWS_AS(it.step(DrainCommand{{}, "n[0-9]", {}}, 9000), Error);
  module::MonitorCommand known;
  known.online = IdSet{0};
  CHECK(it.step(known, 9000).records.empty());
  it.step(Acquire{1, {}}, 9000);
  it.step(Release{1}, 9000);
  CHECK(it.step(DrainCommand{{}, "0", {}}, 30).records[0].event.timestamp == wall_time(30));
}

TEST_CASE("each partition has its holder, who hears of its targets alone") {
  Engine engine;
  Start input = start("n[0-3]");
  module::PartitionRule left{"left", IdSet::parse("0-1"), {}};
  module::PartitionRule right{"right", IdSet::parse("2-3"), {}};
  input.command.partitions = {left, right};
  (void)engine.step(input, at(1));
  CHECK(engine.step(Acquire{1, "left"}, at(2)).acquired->resources == IdSet::parse("0-1"));
  CHECK(engine.step(Acquire{2, "right"}, at(2)).acquired->resources == IdSet::parse("2-3"));
  // Only the scheduler that holds the target receives the change.
  const Effects effects = engine.step(DrainCommand{{}, "3", {}}, at(3));
  REQUIRE(effects.updates.size() == 1);
  CHECK(effects.updates[0].holder == 2);
  CHECK(engine.step(Release{1}, at(4)).records.empty());
  CHECK(engine.step(Acquire{3, "left"}, at(5)).acquired->resources == IdSet::parse("0-1"));
}

TEST_CASE("a load divides the inventory by its own rules, and changes nothing if they overlap") {
  Started it("n[0-3]");
  module::DefineCommand load;
  load.inventory = inventory("n[0-5]");
  load.online = load.inventory->ranks();
  load.partitions = {{"left", IdSet::parse("0-2"), {}}, {"right", IdSet::parse("2-5"), {}}};
  CHECK_THROWS_AS(it.step(load), Error);
  CHECK(it.engine.module().inventory().ranks() == IdSet::parse("0-3"));
  CHECK(it.engine.acquisition().partitions().empty());

  load.partitions = {{"left", IdSet::parse("0-2"), {}},
                     {"big", std::nullopt, constraint::parse_query("big")}};
  CHECK_FALSE(it.step(load).records.empty());
  CHECK(it.step(Acquire{1, "left"}).acquired->resources == IdSet::parse("0-2"));
  // A later change is divided by the rules of the load, too.
  it.step(module::PropertyCommand{module::PropertyCommand::Op::add, "big", "4"});
  CHECK(it.step(Acquire{2, "big"}).acquired->resources == IdSet{4});
  CHECK(it.step(Acquire{3, {}}).acquired->resources == IdSet::parse("3,5"));
}

TEST_CASE("after a mute holders hear nothing") {
  Started it("n[0-3]");
  it.step(Acquire{1, {}});
  it.step(Mute{});
  CHECK(it.step(DrainCommand{{}, "0", {}}).updates.empty());
}

TEST_CASE("a log brings the state to the next start, by host and which of its targets") {
  Started before("h,h,h,k");
  before.step(DrainCommand{{"fan"}, "1", {}});
  before.step(module::PropertyCommand{module::PropertyCommand::Op::add, "big", "2"});
  before.step(module::ShrinkCommand{"0"});
  before.step(module::ExpirationCommand{wall_time(5000)});

  Engine after;
  (void)after.step(start("k,h,h,h", before.fold.state), at(100));
  const module::Module& module = after.module();
  // The first target of h has left, the second one is drained, the third one has the property.
  CHECK(module.inventory().ranks() == IdSet::parse("0,2-3"));
  CHECK(module.drains().ranks() == IdSet{2});
  CHECK(module.inventory().properties().at("big") == IdSet{3});
  CHECK(module.inventory().expiration() == wall_time(5000));
}

}  // namespace
}  // namespace resourced::engine

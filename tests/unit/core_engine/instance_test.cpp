// Steps of a module in a Flux instance: its records, the updates of schedulers, and events that no log has.
#include <memory>
#include <variant>

#include <doctest/doctest.h>

#include "core/engine/engine.hpp"
#include "core/error.hpp"

namespace resourced::engine {

using module::DefineMethod;
using module::DrainCommand;
using module::DrainMode;
using text::Hostlist;
using text::IdSet;

namespace {

Start begin(const char* hosts, const char* online, std::vector<module::DrainGroup> drains = {}) {
  return {.brokers = Brokers{Hostlist::parse(hosts), *online == '\0' ? IdSet{} : IdSet::parse(online),
                             std::move(drains)}};
}

module::DefineCommand definition(DefineMethod method, const char* ranks, const char* hosts,
                                 const char* exclude = "") {
  module::DefineCommand input;
  input.method = method;
  input.inventory = std::make_shared<const rset::ResourceSet>(
      std::vector<rset::ResourceGroup>{{IdSet::parse(ranks), IdSet::range(0, 1), IdSet{}}},
      Hostlist::parse(hosts));
  if (*exclude != '\0') input.exclude = IdSet::parse(exclude);
  return input;
}

/// An engine whose inputs come a second apart.
struct Stand {
  Engine engine{0, {}};
  double now = 100;

  Effects step(const Input& input) {
    now += 1;
    return engine.step(input, {wall_time(now), steady_time(now)});
  }
  Effects monitor(const char* offline, const char* online) {
    module::MonitorCommand command;
    if (*offline != '\0') command.offline = IdSet::parse(offline);
    if (*online != '\0') command.online = IdSet::parse(online);
    return step(module::Command(command));
  }
};

}  // namespace

TEST_CASE(
    "a begin records a restart with the brokers and the online ranks; the drains are in the log already") {
  Engine engine(7, wall_time(200));
  const Effects effects = engine.step(
      begin("a,a,b", "0,2,9", {{{{"fan"}, wall_time(50)}, IdSet{1}}, {{{}, wall_time(900)}, IdSet{2}}}),
      {wall_time(100), steady_time(1)});
  REQUIRE(effects.records.size() == 1);
  const Record& record = effects.records[0];
  CHECK(record.sequence == 8);
  // The restart is not earlier than the last event of the log, although the clock is; the later drain does
  // not count.
  CHECK(record.event.timestamp == wall_time(200));
  const auto& restart = std::get<module::RestartEvent>(record.event.body);
  CHECK(restart.ranks == IdSet::parse("0-2"));
  CHECK(restart.online == IdSet::parse("0,2"));
  CHECK(restart.nodelist.encode() == "a,a,b");
  CHECK(engine.module().drains().ranks() == IdSet::parse("1-2"));
  CHECK(engine.module().drains().find(1)->timestamp == wall_time(50));
  CHECK(engine.module().drains().find(1)->reason == "fan");
  CHECK(engine.applied_at() == wall_time(200));
}

TEST_CASE("ranks that are forced online need no broker, and a drain of one is kept") {
  Stand it;
  Start input = begin("a", "", {{{{"fan"}, wall_time(50)}, IdSet{2}}});
  input.brokers->forced_online = IdSet::parse("0-3");
  const Effects effects = it.step(input);
  REQUIRE(effects.records.size() == 1);
  const auto& restart = std::get<module::RestartEvent>(effects.records[0].event.body);
  CHECK(restart.ranks == IdSet::parse("0-3"));
  CHECK(restart.online == IdSet::parse("0-3"));
  CHECK(restart.nodelist.encode() == "a");
  it.step(definition(DefineMethod::kvs, "0-3", "fake[0-3]"));
  CHECK(it.engine.module().drains().ranks() == IdSet{2});
  CHECK(it.engine.module().available() == IdSet::parse("0-1,3"));
}

TEST_CASE("an instance is defined once R is known, and a drained target that is excluded is undrained") {
  Stand it;
  it.step(begin("a,b,c", "0-2", {{{{"fan"}, wall_time(50)}, IdSet::parse("0,2")}}));
  const Effects effects = it.step(definition(DefineMethod::kvs, "0-1", "a,b", "2"));
  REQUIRE(effects.records.size() == 2);
  CHECK(std::get<module::DefineEvent>(effects.records[0].event.body).method == DefineMethod::kvs);
  CHECK(*effects.records[0].resources == it.engine.module().inventory().encode());
  CHECK(std::get<module::UndrainEvent>(effects.records[1].event.body).ranks == IdSet{2});
  CHECK(effects.records[1].hosts.encode() == "c");
  CHECK(it.engine.module().available() == IdSet{1});
}

TEST_CASE("states change before R is known, and an acquire after that has them") {
  Stand it;
  it.step(begin("a,b,c", ""));
  CHECK(it.monitor("", "0-2").records.size() == 1);
  CHECK(it.step(DrainCommand{{"fan"}, "1", DrainMode::none}).records.size() == 1);
  CHECK(it.step(ForceDown{IdSet{2}}).records.size() == 1);
  CHECK_THROWS_WITH_AS(it.step(ForceDown{IdSet{3}}), "idset is out of range", Error);
  CHECK_THROWS_WITH_AS(it.step(SetExpiration{{wall_time(9000)}}), "the inventory is not known yet", Error);
  it.step(definition(DefineMethod::configuration, "0-2", "a,b,c"));
  CHECK(it.step(Acquire{1, {}}).acquired->resources == IdSet::parse("0-2"));
  CHECK(it.engine.module().available() == IdSet{0});
}

TEST_CASE("a lost rank is down and gone for its scheduler in one change, and no log tells of it") {
  Stand it;
  it.step(begin("a,b,c", "0-2"));
  it.step(definition(DefineMethod::dynamic_discovery, "0-2", "a,b,c"));
  it.step(DrainCommand{{"fan"}, "2", DrainMode::none});
  it.step(Acquire{5, {}});
  const Effects effects = it.monitor("1-2", "");
  REQUIRE(effects.updates.size() == 1);
  CHECK(effects.updates[0].delta.down == IdSet::parse("1-2"));
  CHECK(effects.updates[0].delta.shrink == IdSet::parse("1-2"));
  REQUIRE(effects.records.size() == 2);
  CHECK(std::holds_alternative<module::LossEvent>(effects.records[0].event.body));
  CHECK(std::holds_alternative<module::OfflineEvent>(effects.records[1].event.body));
  CHECK(effects.records[1].sequence == effects.records[0].sequence + 1);
  CHECK(effects.records[1].hosts.encode() == "b,c");
  CHECK(it.engine.module().drains().ranks() == IdSet{2});

  // The broker returns: this scheduler and the next one are not told, until R is defined again.
  CHECK(it.monitor("", "1").updates.empty());
  it.step(Release{5});
  CHECK(it.step(Acquire{6, {}}).acquired->resources == IdSet{0});
  it.step(Release{6});
  it.step(definition(DefineMethod::reload, "0-2", "a,b,c"));
  CHECK(it.step(Acquire{7, {}}).acquired->resources == IdSet::parse("0-2"));
  CHECK(it.engine.module().available() == IdSet::parse("0-1"));
}

TEST_CASE("a lost rank without a broker can be undrained") {
  Stand it;
  Start input = begin("a", "");
  input.brokers->forced_online = IdSet::parse("0-2");
  it.step(input);
  it.step(definition(DefineMethod::kvs, "0-2", "a,fake[1-2]"));
  it.step(DrainCommand{{"fan"}, "2", DrainMode::none});
  it.step(ForceDown{IdSet::parse("1-2")});
  CHECK(it.engine.module().inventory().ranks() == IdSet{0});
  CHECK(it.engine.module().addressable().ranks() == IdSet::parse("0-2"));
  CHECK(it.step(module::UndrainCommand{"fake2", {}, DrainMode::none}).records.size() == 1);
  CHECK(it.engine.module().drains().ranks().empty());
  // The state of the rank is kept until the next definition, as that of a broker's rank.
  it.step(DrainCommand{{"fan"}, "1", DrainMode::none});
  it.step(definition(DefineMethod::reload, "0-1", "a,fake1"));
  CHECK(it.engine.module().drains().ranks() == IdSet{1});
  it.step(definition(DefineMethod::reload, "0", "a"));
  CHECK(it.engine.module().drains().ranks().empty());
}

TEST_CASE("with a configured R a rank that goes offline is down, and up when it is back") {
  Stand it;
  it.step(begin("a,b", "0-1"));
  it.step(definition(DefineMethod::configuration, "0-1", "a,b"));
  it.step(Acquire{1, {}});
  const Effects gone = it.monitor("1", "");
  REQUIRE(gone.updates.size() == 1);
  CHECK(gone.updates[0].delta.down == IdSet{1});
  CHECK(gone.updates[0].delta.shrink.empty());
  REQUIRE(gone.records.size() == 1);
  CHECK(std::holds_alternative<module::OfflineEvent>(gone.records[0].event.body));
  const Effects back = it.monitor("", "1");
  REQUIRE(back.updates.size() == 1);
  CHECK(back.updates[0].delta.up == IdSet{1});
}

TEST_CASE("ranks that share a host, or have none in R, come and go one by one") {
  Stand it;
  it.step(begin("h,h,h,h", "0-3"));
  it.step(definition(DefineMethod::configuration, "0-2", "h,h,h"));
  it.step(Acquire{1, {}});
  const Effects drained = it.step(DrainCommand{{"fan"}, "2-3", DrainMode::none});
  REQUIRE(drained.updates.size() == 1);
  CHECK(drained.updates[0].delta.down == IdSet{2});
  CHECK(drained.records[0].ranks == IdSet::parse("2-3"));
  CHECK(drained.records[0].hosts.encode() == "h,h");
  CHECK(it.engine.module().names(drained.records[0].ranks).ordinals == std::vector<std::uint32_t>{2, 3});
  CHECK(it.monitor("3", "").updates.empty());
  // The name of the host selects all of its ranks in R.
  const Effects all = it.step(DrainCommand{{"disk"}, "h", DrainMode::update});
  CHECK(all.records[0].ranks == IdSet::parse("0-2"));
  REQUIRE(all.updates.size() == 1);
  CHECK(all.updates[0].delta.down == IdSet::parse("0-1"));
}

TEST_CASE("an expiration that is the present one is recorded, and told to the holder") {
  Stand it;
  it.step(begin("a,b", "0-1"));
  it.step(definition(DefineMethod::configuration, "0-1", "a,b"));
  it.step(Acquire{1, {}});
  CHECK(it.step(SetExpiration{{wall_time(9000)}}).updates.size() == 1);
  const Effects again = it.step(SetExpiration{{wall_time(9000)}});
  REQUIRE(again.records.size() == 1);
  REQUIRE(again.updates.size() == 1);
  CHECK(again.updates[0].delta.expiration == wall_time(9000));
}

TEST_CASE("a scheduler goes on where an earlier process was, and is told the differences alone") {
  Stand stand;
  (void)stand.step(begin("a,b,c,d", "0,2-3", {{{{"fan"}, wall_time(50)}, IdSet{3}}}));
  (void)stand.step(definition(DefineMethod::configuration, "0-3", "a,b,c,d"));
  // The scheduler was told that 1 and 3 are up, and that 0 has left for good.
  const Effects effects = stand.step(Resume{5, IdSet::parse("1-3"), IdSet::parse("1,3"), wall_time(9)});
  CHECK(effects.records.empty());
  REQUIRE(effects.updates.size() == 1);
  const Update& update = effects.updates[0];
  CHECK(update.holder == 5);
  CHECK(update.after == stand.engine.applied());
  CHECK(update.delta.up == IdSet{2});
  CHECK(update.delta.down == IdSet::parse("1,3"));
  CHECK(update.delta.shrink.empty());
  CHECK(update.delta.expiration == WallTime{});
  // Later updates concern only the resources of the scheduler.
  CHECK(stand.monitor("", "1").updates.at(0).delta.up == IdSet{1});
  (void)stand.monitor("0", "");
  CHECK(stand.monitor("", "0").updates.empty());
  CHECK_THROWS_AS((void)stand.step(Acquire{6, std::nullopt}), Error);
}

TEST_CASE("a rank that has lost its broker meanwhile leaves an R that was not configured") {
  for (const DefineMethod method : {DefineMethod::kvs, DefineMethod::configuration}) {
    Stand stand;
    (void)stand.step(begin("a,b,c,d", "0,3"));
    (void)stand.step(definition(method, "0-3", "a,b,c,d"));
    // The scheduler knows 1 as up; 2 has never been online.
    const Effects effects = stand.step(Resume{5, IdSet::parse("0-3"), IdSet::parse("0-1"), WallTime{}});
    REQUIRE(effects.updates.size() == 1);
    CHECK(effects.updates[0].delta.up == IdSet{3});
    CHECK(effects.updates[0].delta.down == IdSet{1});
    const bool is_lost = method == DefineMethod::kvs;
    CHECK(effects.updates[0].delta.shrink == (is_lost ? IdSet{1} : IdSet{}));
    CHECK(stand.engine.module().inventory().ranks() == IdSet::parse(is_lost ? "0,2-3" : "0-3"));
    CHECK(stand.engine.module().recorded_inventory().ranks() == IdSet::parse("0-3"));
    CHECK(effects.records.size() == (is_lost ? 1 : 0));
    if (is_lost) CHECK(std::holds_alternative<module::LossEvent>(effects.records[0].event.body));
  }
}

TEST_CASE("a scheduler does not go on where another one has the resources, and nothing is lost for it") {
  Stand stand;
  (void)stand.step(begin("a,b,c,d", "0,3"));
  (void)stand.step(definition(DefineMethod::kvs, "0-3", "a,b,c,d"));
  (void)stand.step(Acquire{4, std::nullopt});
  const auto before = stand.engine.applied();
  CHECK_THROWS_WITH_AS((void)stand.step(Resume{5, IdSet::parse("0-3"), IdSet::parse("0-1"), WallTime{}}),
                       "resources are acquired by another scheduler already", Error);
  CHECK(stand.engine.applied() == before);
  CHECK(stand.engine.module().inventory().ranks() == IdSet::parse("0-3"));
}

TEST_CASE("a muted scheduler that goes on is told nothing, and has its resources") {
  Stand stand;
  (void)stand.step(begin("a,b", "0"));
  (void)stand.step(definition(DefineMethod::configuration, "0-1", "a,b"));
  Resume resume{5, IdSet::parse("0-1"), IdSet::parse("0-1"), WallTime{}};
  resume.muted = true;
  CHECK(stand.step(resume).updates.empty());
  CHECK(stand.monitor("", "1").updates.empty());
  CHECK_THROWS_AS((void)stand.step(Acquire{6, std::nullopt}), Error);
  (void)stand.step(Release{5});
  CHECK(stand.step(Acquire{6, std::nullopt}).acquired->resources == IdSet::parse("0-1"));
}

TEST_CASE("a scheduler that goes on is told of properties that it does not know of") {
  Stand stand;
  (void)stand.step(begin("a,b,c", "0-2"));
  module::DefineCommand define = definition(DefineMethod::kvs, "0-2", "a,b,c");
  define.property_add = {{"new", IdSet::parse("0-1")}, {"known", IdSet{1}}};
  (void)stand.step(define);
  Resume resume{5, IdSet::parse("1-2"), IdSet::parse("1-2"), WallTime{}};
  resume.properties.added = {{"known", IdSet{1}}, {"gone", IdSet{2}}};
  const Effects effects = stand.step(resume);
  REQUIRE(effects.updates.size() == 1);
  const module::Delta& delta = effects.updates[0].delta;
  using Properties = rset::ResourceSet::Properties;
  CHECK(delta.property_add == Properties{{"new", IdSet{1}}});
  CHECK(delta.property_remove == Properties{{"gone", IdSet{2}}});
  CHECK(delta.up.empty());
}

TEST_CASE(
    "a scheduler that goes on is told of targets that have left, and of nothing if nothing has changed") {
  Stand stand;
  (void)stand.step(begin("a,b", "0-1"));
  (void)stand.step(definition(DefineMethod::configuration, "0", "a"));
  const Effects effects = stand.step(Resume{5, IdSet::parse("0-1"), IdSet::parse("0-1"), WallTime{}});
  REQUIRE(effects.updates.size() == 1);
  CHECK(effects.updates[0].delta.shrink == IdSet{1});
  CHECK(effects.updates[0].delta.down == IdSet{1});
  (void)stand.step(Release{5});
  CHECK(stand.step(Resume{6, IdSet{0}, IdSet{0}, WallTime{}}).updates.empty());
}

TEST_CASE("brokers that leave with their instance take no resources with them") {
  Stand it;
  (void)it.step(begin("a,b", "0-1"));
  (void)it.step(definition(DefineMethod::kvs, "0-1", "a,b"));
  module::MonitorCommand command;
  command.offline = IdSet::parse("0-1");
  command.instance_left = true;
  const Effects effects = it.step(module::Command(command));
  REQUIRE(effects.records.size() == 1);
  CHECK(std::holds_alternative<module::OfflineEvent>(effects.records[0].event.body));
  CHECK(it.engine.module().inventory().ranks() == IdSet::parse("0-1"));
}

TEST_CASE("an instance with its brokers in another order finds the drains on their hosts, and no inventory") {
  Stand it;
  (void)it.step(
      begin("a,b,c", "0-2", {{{{"fan"}, wall_time(50)}, IdSet{1}}, {{{"gone"}, wall_time(60)}, IdSet{2}}}));
  (void)it.step(definition(DefineMethod::configuration, "0-2", "a,b,c", "0"));
  const Effects effects = it.step(begin("b,a,d", "0"));
  REQUIRE(effects.records.size() == 1);
  CHECK(std::get<module::RestartEvent>(effects.records[0].event.body).of_brokers);
  // The drain of the absent host is kept.
  REQUIRE(it.engine.absent().drains.size() == 1);
  CHECK(it.engine.absent().drains[0].target.host == "c");

  const module::Module& module = it.engine.module();
  CHECK(module.drains().ranks() == IdSet{0});
  CHECK(module.drains().find(0)->reason == "fan");
  CHECK(module.drains().find(0)->timestamp == wall_time(50));
  CHECK(module.online() == IdSet{0});
  CHECK(!module.defined());
  CHECK(module.available().empty());
  CHECK(module.excluded().empty());
  CHECK_THROWS_AS((void)it.step(module::Command(module::ShrinkCommand{"0"})), Error);

  (void)it.step(definition(DefineMethod::kvs, "0-2", "b,a,d"));
  CHECK(module.acquirable() == IdSet::parse("0-2"));
  CHECK(module.available().empty());
  (void)it.monitor("", "1");
  CHECK(module.available() == IdSet{1});

  // The drain of c has returned with its host.
  (void)it.step(begin("a,b,c", ""));
  CHECK(module.drains().ranks() == IdSet::parse("1-2"));
  CHECK(module.drains().find(2)->reason == "gone");
  CHECK(module.drains().find(2)->timestamp == wall_time(60));
}

TEST_CASE(
    "drains of ranks without a broker are recorded with each definition, and outlive one that lacks them") {
  Stand it;
  Start input = begin("a,b", "0-1", {{{{"fan"}, wall_time(50)}, IdSet{3}}});
  (void)it.step(input);
  (void)it.step(definition(DefineMethod::kvs, "0-3", "a,b,c,d"));
  (void)it.step(definition(DefineMethod::reload, "0-1", "a,b"));
  CHECK(it.engine.module().drains().ranks().empty());
  (void)it.step(definition(DefineMethod::reload, "0-3", "a,b,c,d"));
  CHECK(it.engine.module().drains().find(3)->reason == "fan");
}

TEST_CASE("the resources of an instance are not shrunk by others") {
  Stand it;
  (void)it.step(begin("a,b", "0-1"));
  (void)it.step(definition(DefineMethod::kvs, "0-1", "a,b"));
  CHECK_THROWS_AS((void)it.step(module::Command(module::ShrinkCommand{"1"})), Error);
}

TEST_CASE("R in the order of earlier brokers is found again by its hosts") {
  module::State state;
  state.brokers = Hostlist::parse("b,a");
  state.kept_inventory = {DefineMethod::kvs, definition(DefineMethod::kvs, "0-1", "a,b").inventory, {}};
  state.absent.properties = {{"gold", {"a", 0}, true}};
  const auto recalled = module::recall_definition(state);
  REQUIRE(recalled);
  CHECK(recalled->inventory->nodelist().encode() == "b,a");
  CHECK(recalled->property_add == rset::ResourceSet::Properties{{"gold", IdSet{1}}});

  // An R of other hosts is not used.
  state.kept_inventory.resources = definition(DefineMethod::kvs, "0-1", "x,y").inventory;
  CHECK(!module::recall_definition(state));
  state.kept_inventory = {};
  CHECK(!module::recall_definition(state));
}

TEST_CASE("a definition is recorded with its brokers, so that a later process can begin without them") {
  Stand it;
  (void)it.step(begin("h,h,x", ""));
  module::DefineCommand input = definition(DefineMethod::configuration, "0-1,5", "h,h,y");
  input.property_add = {{"gold", IdSet{1}}};
  (void)it.step(input);
  module::State state = it.engine.module().state();
  // The property of the host without resources is removed.
  state.absent.properties = {{"fast", {"x", 0}, false}, {"fast", {"y", 0}, false}};
  const auto recalled = module::recall_definition(state);
  REQUIRE(recalled);
  CHECK(recalled->method == DefineMethod::configuration);
  CHECK(recalled->inventory->encode() == input.inventory->encode());
  CHECK(recalled->property_add == rset::ResourceSet::Properties{{"gold", IdSet{1}}});
  CHECK(recalled->property_remove == rset::ResourceSet::Properties{{"fast", IdSet{5}}});
}

TEST_CASE("a drain from before the daemon served an instance counts before that of the instance") {
  Stand it;
  Start first = begin("a,b,c", "0-2");
  first.state.absent.drains = {{{{"fan"}, wall_time(7)}, {"b", 0}}, {{{"gone"}, wall_time(8)}, {"z", 0}}};
  first.brokers->drains = {{{{"disk"}, wall_time(9)}, IdSet{1, 2}}};
  (void)it.step(first);
  const module::DrainTable& drains = it.engine.module().drains();
  CHECK(drains.ranks() == IdSet{1, 2});
  CHECK(drains.find(1)->reason == "fan");
  CHECK(drains.find(2)->reason == "disk");
  REQUIRE(it.engine.module().state().absent.drains.size() == 1);
  CHECK(it.engine.module().state().absent.drains[0].target.host == "z");
}

}  // namespace resourced::engine

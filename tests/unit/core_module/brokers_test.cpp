// By-rank mode: in a Flux instance a target is the rank of a broker. Ranks may share a host, may be missing
// in R, and have their states before R is known.
#include <memory>
#include <variant>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/module/module.hpp"

namespace resourced::module {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

IdSet ids(const char* text) { return *text == '\0' ? IdSet{} : IdSet::parse(text); }

std::shared_ptr<const ResourceSet> resources(const char* ranks, const char* hosts) {
  return std::make_shared<const ResourceSet>(
      std::vector<rset::ResourceGroup>{{ids(ranks), IdSet::range(0, 3), IdSet{}}}, Hostlist::parse(hosts));
}

/// A module with brokers on these hosts, all of them online.
struct Instance {
  Module module;

  explicit Instance(const char* hosts) {
    const Hostlist list = Hostlist::parse(hosts);
    const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(list.size() - 1));
    module.apply({wall_time(1), RestartEvent{ranks, ranks, list, true}});
  }
  std::vector<Event> execute(const Command& command) { return applied(module.decide(command, wall_time(2))); }
  std::vector<Event> define(const DefineCommand& command) {
    return applied(module.decide(command, wall_time(3)));
  }
  std::vector<Event> define(DefineMethod method, const char* ranks, const char* hosts,
                            const char* exclude = "") {
    return define({method, resources(ranks, hosts), ids(exclude), {}, {}});
  }
  std::vector<Event> lose(const char* ranks) {
    MonitorCommand command;
    command.offline = ids(ranks);
    return execute(command);
  }
  std::vector<Event> join(const char* ranks) {
    MonitorCommand command;
    command.online = ids(ranks);
    return execute(command);
  }
  std::vector<Event> applied(std::vector<Event> events) {
    for (const Event& event : events) module.apply(event);
    return events;
  }
};

}  // namespace

TEST_CASE("without brokers the inventory has all targets that a command may name") {
  Module module;
  CHECK(!module.has_brokers());
  CHECK(&module.addressable() == &module.inventory());
  DefineCommand start;
  start.inventory = resources("0-1", "a,b");
  for (const Event& event : module.start(start, wall_time(1))) module.apply(event);
  CHECK(!module.has_brokers());
  CHECK(&module.addressable() == &module.inventory());
}

TEST_CASE("with brokers all ranks of the instance are targets, and those of R above them") {
  Instance it("a,a,b");
  CHECK(it.module.has_brokers());
  CHECK(!it.module.defined());
  CHECK(it.module.addressable().ranks() == ids("0-2"));
  CHECK(it.module.addressable().nodelist().encode() == "a,a,b");
  CHECK(it.module.online() == ids("0-2"));
  CHECK(it.module.available().empty());

  // R has another host for rank 1, and does not have rank 0.
  it.define(DefineMethod::kvs, "1,4-5", "x,y,z");
  CHECK(it.module.addressable().ranks() == ids("0-2,4-5"));
  CHECK(it.module.addressable().nodelist().encode() == "a,a,b,y,z");
  CHECK(it.module.available() == ids("1"));

  it.define(DefineMethod::reload, "0-1", "x,y");
  CHECK(it.module.addressable().ranks() == ids("0-2"));
  CHECK(it.module.available() == ids("0-1"));
}

TEST_CASE("a shrink is refused, as the next definition would take it back") {
  Instance it("a,b");
  it.define(DefineMethod::configuration, "0-3", "a,b,c,d");
  CHECK_THROWS_WITH_AS(it.execute(ShrinkCommand{"1-2"}),
                       "the resources are those of a Flux instance: load another R there", Error);
  CHECK(it.module.inventory().ranks() == ids("0-3"));
}

TEST_CASE("a forget is refused, as an instance keeps nothing for hosts") {
  Instance it("a,b");
  it.define(DefineMethod::configuration, "0-1", "a,b");
  CHECK_THROWS_WITH_AS(it.execute(ForgetCommand{"c"}),
                       "a Flux instance keeps nothing for hosts that it lacks", Error);
}

TEST_CASE("drain and undrain work before R is known, on all ranks of a host") {
  Instance it("a,a,b");
  const auto drained = it.execute(DrainCommand{{"fan"}, "a", DrainMode::none});
  REQUIRE(drained.size() == 1);
  CHECK(std::get<DrainEvent>(drained[0].body).ranks == ids("0-1"));
  CHECK(std::get<DrainEvent>(drained[0].body).nodelist.encode() == "a,a");
  const auto undrained = it.execute(UndrainCommand{"1", {}, DrainMode::none});
  REQUIRE(undrained.size() == 1);
  CHECK(std::get<UndrainEvent>(undrained[0].body).nodelist.encode() == "a");
  CHECK(it.module.drains().ranks() == ids("0"));
  CHECK_THROWS_WITH_AS(it.execute(DrainCommand{{}, "3", DrainMode::none}), "idset is out of range", Error);
  CHECK_THROWS_WITH_AS(it.execute(DrainCommand{{}, "c", DrainMode::none}),
                       "invalid targets: invalid hosts: c", Error);
}

TEST_CASE("what changes R has to wait for it") {
  Instance it("a,b");
  for (const Command& command : {Command(PropertyCommand{PropertyCommand::Op::add, "big", "0"}),
                                 Command(ExpirationCommand{}), Command(ShrinkCommand{"0"})}) {
    CHECK_THROWS_WITH_AS(it.execute(command), "the inventory is not known yet", Error);
  }
}

TEST_CASE("a rank without an entry in R can be drained, and is online, but is not available") {
  Instance it("a,b,c");
  it.define(DefineMethod::configuration, "0-1", "a,b");
  it.execute(DrainCommand{{"no entry"}, "2", DrainMode::none});
  CHECK(it.module.drains().ranks() == ids("2"));
  CHECK(it.module.available() == ids("0-1"));
  CHECK(it.lose("2").size() == 1);
  CHECK(it.module.online() == ids("0-1"));
  CHECK(it.join("2").size() == 1);
  CHECK(it.module.online() == ids("0-2"));
  CHECK(it.module.available() == ids("0-1"));
}

TEST_CASE("the hosts of an event are those of the brokers, and the hosts of a command those of R") {
  Instance it("a,b");
  it.define(DefineMethod::configuration, "0-2", "x,y,z");
  const auto drained = it.execute(DrainCommand{{}, "0,2", DrainMode::none});
  CHECK(std::get<DrainEvent>(drained[0].body).nodelist.encode() == "a,z");
  const auto updated = it.execute(PropertyCommand{PropertyCommand::Op::add, "big", "1"});
  CHECK(std::get<PropertyEvent>(updated[0].body).nodelist.encode() == "b");
  CHECK_THROWS_WITH_AS(it.execute(UndrainCommand{"a,y,b", {}, DrainMode::none}),
                       "invalid targets: invalid hosts: a,b", Error);
  const auto undrained = it.execute(UndrainCommand{"x,z", {}, DrainMode::none});
  CHECK(std::get<UndrainEvent>(undrained[0].body).ranks == ids("0,2"));
  CHECK(std::get<UndrainEvent>(undrained[0].body).nodelist.encode() == "a,z");
}

TEST_CASE("a drain that changes nothing is an event with all its targets") {
  Instance it("a,b");
  it.define(DefineMethod::configuration, "0-1", "a,b");
  it.execute(DrainCommand{{"fan"}, "0", DrainMode::none});
  const auto again = it.execute(DrainCommand{{"disk"}, "0-1", DrainMode::update});
  REQUIRE(again.size() == 1);
  CHECK(std::get<DrainEvent>(again[0].body).ranks == ids("0-1"));
  CHECK(std::get<DrainEvent>(again[0].body).reason == "disk");
  CHECK(it.execute(DrainCommand{{"disk"}, "0-1", DrainMode::update}).size() == 1);
  CHECK(it.module.drains().find(0)->reason == "fan");
  CHECK(it.module.drains().find(1)->reason == "disk");
  // A drain is refused for the same reasons as outside of an instance.
  CHECK_THROWS_WITH_AS(it.execute(DrainCommand{{"new"}, "0", DrainMode::none}), "rank 0 already drained",
                       Error);
}

TEST_CASE("an expiration that is the present one is an event") {
  Instance it("a,b");
  it.define(DefineMethod::configuration, "0-1", "a,b");
  it.execute(ExpirationCommand{wall_time(5000)});
  const auto again = it.execute(ExpirationCommand{wall_time(5000)});
  REQUIRE(again.size() == 1);
  CHECK(std::get<ExpirationEvent>(again[0].body).expiration == wall_time(5000));
}

TEST_CASE("a lost rank leaves the inventory, before it is offline, if R is not configured") {
  Instance it("a,b,c");
  it.define(DefineMethod::dynamic_discovery, "0-2", "a,b,c", "0");
  it.execute(DrainCommand{{"fan"}, "1", DrainMode::none});
  const auto events = it.lose("0-1");
  REQUIRE(events.size() == 2);
  const auto& loss = std::get<LossEvent>(events[0].body);
  CHECK(loss.ranks == ids("0-1"));
  CHECK(loss.nodelist.encode() == "a,b");
  CHECK(std::get<OfflineEvent>(events[1].body).ranks == ids("0-1"));
  CHECK(it.module.inventory().ranks() == ids("2"));
  CHECK(it.module.online() == ids("2"));
  // The states of the lost ranks are kept, and they are still targets.
  CHECK(it.module.drains().ranks() == ids("1"));
  CHECK(it.module.excluded() == ids("0"));
  CHECK(it.module.addressable().ranks() == ids("0-2"));

  // The broker of rank 1 returns, but the rank does not return to this inventory.
  it.execute(UndrainCommand{"1", {}, DrainMode::none});
  CHECK(it.join("1").size() == 1);
  CHECK(it.module.online() == ids("1-2"));
  CHECK(it.module.available() == ids("2"));
  // The rank goes offline again, without another loss.
  CHECK(it.lose("1").size() == 1);
  CHECK(it.join("1").size() == 1);
  it.define(DefineMethod::reload, "0-2", "a,b,c");
  CHECK(it.module.available() == ids("1-2"));
}

TEST_CASE("a lost rank stays in what is recorded, with the changes of the others") {
  Instance it("a,b,c");
  ResourceSet configured = *resources("0-2", "a,b,c");
  configured.add_property("big", ids("1-2"));
  it.define({DefineMethod::kvs, std::make_shared<const ResourceSet>(configured), {}, {}, {}});
  CHECK(&it.module.recorded_inventory() == &it.module.inventory());
  it.lose("2");
  CHECK(it.module.inventory().ranks() == ids("0-1"));
  CHECK(it.module.recorded_inventory() == configured);
  CHECK(it.module.property_changes().removed.empty());

  it.execute(PropertyCommand{PropertyCommand::Op::add, "new", "0"});
  it.execute(PropertyCommand{PropertyCommand::Op::remove, "big", "1"});
  it.execute(ExpirationCommand{wall_time(9000)});
  it.lose("1");
  ResourceSet expected = configured;
  expected.add_property("new", ids("0"));
  expected.remove_property("big", ids("1"));
  expected.set_expiration(wall_time(9000));
  CHECK(it.module.recorded_inventory() == expected);
  CHECK(it.module.inventory() == expected.copy_ranks(ids("0")));
  CHECK(it.module.property_changes().added == ResourceSet::Properties{{"new", ids("0")}});
  CHECK(it.module.property_changes().removed == ResourceSet::Properties{{"big", ids("1")}});

  it.define(DefineMethod::reload, "0", "a");
  CHECK(&it.module.recorded_inventory() == &it.module.inventory());
}

TEST_CASE("all ranks may be lost") {
  Instance it("a,b");
  it.define(DefineMethod::kvs, "0-1", "a,b");
  it.lose("0-1");
  CHECK(it.module.inventory().empty());
  CHECK(it.module.available().empty());
  it.join("0-1");
  CHECK(it.module.available().empty());
}

TEST_CASE("with a configured R, or before R is known, an offline rank is offline and no more") {
  Instance it("a,b");
  CHECK(it.lose("1").size() == 1);
  it.join("1");
  it.define(DefineMethod::configuration, "0-1", "a,b");
  const auto events = it.lose("1");
  REQUIRE(events.size() == 1);
  CHECK(std::get<OfflineEvent>(events[0].body).ranks == ids("1"));
  CHECK(it.module.inventory().ranks() == ids("0-1"));
}

TEST_CASE("states stay with their ranks when R is replaced, whatever hosts it has") {
  Instance it("h,h,h");
  it.execute(DrainCommand{{"fan"}, "1", DrainMode::none});
  it.define(DefineMethod::configuration, "0-1", "h,h");
  CHECK(it.module.available() == ids("0"));
  MonitorCommand torpid;
  torpid.torpid = ids("2");
  it.execute(torpid);
  it.define(DefineMethod::reload, "0-3", "d,c,b,a");
  CHECK(it.module.method() == DefineMethod::reload);
  CHECK(it.module.drains().ranks() == ids("1"));
  CHECK(it.module.drains().find(1)->timestamp == wall_time(2));
  CHECK(it.module.torpid() == ids("2"));
  CHECK(it.module.online() == ids("0-2"));
  CHECK(it.module.available() == ids("0"));
}

TEST_CASE("the drain of a rank that is no target any more waits for it, and its other states are gone") {
  Instance it("a,b");
  it.define(DefineMethod::kvs, "0-5", "a,b,c,d,e,f");
  it.join("2-5");
  it.execute(DrainCommand{{"fan"}, "1,3-4", DrainMode::none});
  MonitorCommand torpid;
  torpid.torpid = ids("1,5");
  it.execute(torpid);
  it.define(DefineMethod::reload, "0,3", "a,d");
  CHECK(it.module.addressable().ranks() == ids("0-1,3"));
  CHECK(it.module.drains().ranks() == ids("1,3"));
  CHECK(it.module.online() == ids("0-1,3"));
  CHECK(it.module.torpid() == ids("1"));
  it.define(DefineMethod::reload, "0-5", "a,b,c,d,e,f");
  CHECK(it.module.available() == ids("0"));
  CHECK(it.module.drains().ranks() == ids("1,3-4"));
}

TEST_CASE("a drain follows its host to another rank above the brokers") {
  Instance it("a,b");
  it.define(DefineMethod::kvs, "0-2", "a,b,x");
  it.execute(DrainCommand{{"fan"}, "2", DrainMode::none});
  it.define(DefineMethod::reload, "0-1,3", "a,b,x");
  CHECK(it.module.drains().ranks() == ids("3"));
  CHECK(it.module.state().absent.drains.empty());
}

TEST_CASE("a target that is drained and now excluded is undrained") {
  Instance it("a,b,c");
  it.execute(DrainCommand{{"fan"}, "0-2", DrainMode::none});
  const auto events = it.define(DefineMethod::configuration, "0-1", "x,y", "1-2,9");
  REQUIRE(events.size() == 2);
  CHECK(std::get<DefineEvent>(events[0].body).exclude == ids("1-2"));
  const auto& undrain = std::get<UndrainEvent>(events[1].body);
  CHECK(undrain.ranks == ids("1-2"));
  CHECK(undrain.nodelist.encode() == "b,c");
  CHECK(it.module.drains().ranks() == ids("0"));
  CHECK_THROWS_WITH_AS(it.execute(DrainCommand{{}, "2", DrainMode::none}), "rank 2 excluded", Error);
}

TEST_CASE("changes of run time are applied to the R that is defined, and counted as such") {
  Instance it("a,b");
  ResourceSet configured = *resources("0-1", "a,b");
  configured.add_property("big", ids("0-1"));
  configured.add_property("wide", ids("0"));
  DefineCommand command;
  command.inventory = std::make_shared<const ResourceSet>(configured);
  command.property_add["fast"] = ids("1,7");
  command.property_add["wide"] = ids("0");
  command.property_remove["big"] = ids("0,7");
  it.define(command);
  CHECK(it.module.inventory().properties().at("big") == ids("1"));
  CHECK(it.module.inventory().properties().at("fast") == ids("1"));
  CHECK(it.module.configured() == configured);
  const ResourceSet::Properties added = it.module.state().run_time_properties().added;
  CHECK(added.at("fast") == ids("1"));
  // The property was added at run time before it was configured, so it would stay if it were not configured
  // any more.
  CHECK(added.at("wide") == ids("0"));

  // An R that is loaded has none of the changes of run time.
  it.define(DefineMethod::reload, "0-1", "a,b");
  CHECK(it.module.inventory().properties().empty());

  command.property_add["no good!"] = ids("0");
  CHECK_THROWS_AS(it.define(command), Error);
  CHECK(it.module.method() == DefineMethod::reload);
}

TEST_CASE("targets of brokers are named in the store by the hosts of the brokers") {
  Instance it("h,h,k");
  it.define(DefineMethod::configuration, "0-2", "x,y,z");
  const TargetNames names = it.module.names(ids("1-2"));
  CHECK(names.hosts.encode() == "h,k");
  CHECK(names.ordinals == std::vector<std::uint32_t>{1, 0});
}

}  // namespace resourced::module

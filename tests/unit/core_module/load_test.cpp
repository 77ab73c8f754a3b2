// Another inventory replaces the present one: the states that follow the targets to it, and those that are
// dropped.
#include <variant>

#include <doctest/doctest.h>

#include "core/module/module.hpp"
#include "core/module/rank_map.hpp"
#include "core/rset/builder.hpp"

namespace resourced::module {

using rset::ResourceSet;
using text::IdSet;

namespace {

/// A set with one rank for each host, also for repeated ones; ranks are given, or count from 0.
ResourceSet of(const char* hosts, const char* ranks = nullptr) {
  const text::Hostlist list = text::Hostlist::parse(hosts);
  rset::ResourceGroup group;
  group.ranks =
      ranks == nullptr ? IdSet::range(0, static_cast<IdSet::Id>(list.size() - 1)) : IdSet::parse(ranks);
  group.cores = IdSet::range(0, 3);
  return {{group}, list};
}

std::string mapped(const char* from, const char* to, const char* ranks, const char* to_ranks = nullptr) {
  return RankMap(of(from), of(to, to_ranks))(IdSet::parse(ranks)).encode();
}

TEST_CASE("targets are found by host, and where hosts repeat by their rank or else their order") {
  CHECK(mapped("a,b,c", "a,b,c", "0,2") == "0,2");
  CHECK(mapped("a,b,c", "c,b", "0-2") == "0-1");
  CHECK(mapped("a,b,c", "c,b", "2") == "0");
  CHECK(mapped("a,b,c", "x,y,z,a", "0") == "3");
  CHECK(mapped("a,b,c", "x", "0-2") == "");
  CHECK(mapped("h,h,h,h", "h,h", "1-3") == "1");
  CHECK(mapped("h,h,h", "x,h,h,h", "0") == "3");
  CHECK(mapped("h,h,h", "h,h,h", "2", "5,6,7") == "7");
  CHECK(mapped("a,h,h,b", "b,a,h,h", "1-2") == "2-3");
}

struct Loaded {
  Module module;

  explicit Loaded(const char* hosts) {
    DefineCommand start;
    start.inventory = std::make_shared<const ResourceSet>(of(hosts));
    start.online = start.inventory->ranks();
    for (const Event& event : module.start(start, wall_time(1))) module.apply(event);
  }
  void execute(const Command& command) {
    for (const Event& event : module.decide(command, wall_time(2))) module.apply(event);
  }
  std::vector<Event> load(const char* hosts, const char* exclude = "", const char* online = "") {
    DefineCommand command;
    command.inventory = std::make_shared<const ResourceSet>(of(hosts));
    if (*exclude != '\0') command.exclude = IdSet::parse(exclude);
    if (*online != '\0') command.online = IdSet::parse(online);
    const auto events = module.decide(command, wall_time(3));
    for (const Event& event : events) module.apply(event);
    return events;
  }
};

TEST_CASE("drains and who is online go with their targets; what is excluded is drained no more") {
  Loaded world("a,b,c,d");
  world.execute(DrainCommand{{"disk"}, "b", DrainMode::none});
  world.execute(DrainCommand{{"fan"}, "d", DrainMode::none});
  MonitorCommand monitor;
  monitor.offline = IdSet::parse("2");
  monitor.torpid = IdSet::parse("0");
  world.execute(monitor);
  const auto events = world.load("e,d,c,b,a", "1");
  // The events: lively, resource-define, undrain.
  REQUIRE(events.size() == 3);
  CHECK(std::get<LivelyEvent>(events[0].body).ranks.encode() == "0");
  CHECK(std::get<DefineEvent>(events[1].body).method == DefineMethod::reload);
  CHECK(std::get<UndrainEvent>(events[2].body).nodelist.encode() == "d");
  CHECK(world.module.drains().ranks().encode() == "3");
  CHECK(world.module.drains().find(3)->reason == "disk");
  CHECK(world.module.drains().find(3)->timestamp == wall_time(2));
  CHECK(world.module.online().encode() == "1,3-4");
  CHECK(world.module.torpid().empty());
  CHECK(world.module.available().encode() == "4");
  CHECK(world.module.excluded().encode() == "1");
  // Targets without agents are all online.
  const auto again = world.load("a,b", "", "0-1");
  CHECK(world.module.available().encode() == "0");
  CHECK(again.size() == 1);
  CHECK(world.load("x,y", "", "0-1").size() == 2);
  CHECK(world.module.available().encode() == "0-1");
}

TEST_CASE("a loaded inventory is taken as it is: what left is back, what was set at run time is gone") {
  Loaded world("a,b,c");
  world.execute(PropertyCommand{PropertyCommand::Op::add, "fast", "a"});
  world.execute(ExpirationCommand{wall_time(5000)});
  world.execute(ShrinkCommand{"c"});
  world.load("a,b,c", "", "0-2");
  CHECK(world.module.inventory() == of("a,b,c"));
  CHECK(world.module.available().encode() == "0-2");
}

}  // namespace
}  // namespace resourced::module

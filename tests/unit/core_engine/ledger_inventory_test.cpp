// The ledger over restarts and changes of the inventory: allocations are kept, and no core or gpu has two
// holders.
#include <doctest/doctest.h>

#include "ledger_world.hpp"

namespace resourced::engine::ledger_tests {
namespace {

TEST_CASE("a start finds the targets by host, and keeps allocations of hosts that are not there") {
  World it("a,b,c");
  it.alloc("j", part("0-1", "0-1", "a,b"));
  it.alloc("k", part("1-2", "2", "b,c"));
  World other = it.restarted("c,x,b");
  CHECK(other.text() == "j:2/0-1;a/0-1? k:0,2/2;");
  CHECK(other.refusal(EBUSY, [&] { other.alloc("l", part("2", "1", "b")); }) ==
        "b core1 is held by allocation j");
  // The state in the log still has the whole allocation.
  CHECK(other.restarted("b,a").text() == "j:0-1/0-1; k:0/2;c/2?");
}

TEST_CASE("targets that share a host are told apart") {
  World it("h,h,h");
  it.alloc("j", part("1", "0", "h"));
  it.alloc("k", part("2", "1", "h"));
  CHECK(it.restarted("x,h,h,h").text() == "j:2/0; k:3/1;");
  CHECK(it.restarted("h,h").text() == "j:1/0; k:h/1?");
}

TEST_CASE("another inventory is loaded: allocations follow their hosts, and come back with them") {
  World it("a,b,c,d");
  it.alloc("j", part("1-2", "0-1", "b,c"));
  it.alloc("k", part("3", "2", "d"));
  it.step(Release{1});
  const auto load = [&](std::string_view hosts) {
    module::DefineCommand command;
    command.inventory = cluster(hosts);
    command.online = command.inventory->ranks();
    it.step(command);
  };
  load("d,c");
  CHECK(it.text() == "j:1/0-1;b/0-1? k:0/2;");
  CHECK(it.restarted("a,b,c,d").text() == "j:1-2/0-1; k:3/2;");
  load("b,c,d");
  CHECK(it.text() == "j:0-1/0-1; k:2/2;");
  it.step(Acquire{2, {}});
  CHECK(it.refusal(EBUSY, [&] { it.alloc("l", part("0", "0", "b"), {2}); }) ==
        "b core0 is held by allocation j");
  it.free({"j", "k"}, {}, {2});
}

TEST_CASE("cores that their target has no longer are absent, and come back with it") {
  World it("a,b,c");
  it.alloc("j", part("0-1", "0-3", "a,b"));
  it.alloc("k", part("2", "3", "c"));
  const World smaller = it.restarted("a,b,c", 1);
  CHECK(smaller.text() == "j:0-1/0-1;a/2-3?b/2-3? k:c/3?");
  CHECK(smaller.engine.module().ledger().held().cores.size() == 2);
  CHECK(smaller.restarted("a,b,c").text() == "j:0-1/0-3; k:2/3;");
  CHECK(smaller.restarted("b,x,a").text() == "j:0,2/0-3; k:c/3?");
  // Cores that are absent or held cannot be allocated to another job.
  World other = smaller.restarted("a,b,c", 1);
  CHECK(other.refusal(EINVAL, [&] { other.alloc("l", part("0", "2", "a")); }) == "a has no core2");
  CHECK(other.refusal(EBUSY, [&] { other.alloc("l", part("0", "1", "a")); }) ==
        "a core1 is held by allocation j");
  SUBCASE("those of a target that is freed are freed with it") {
    other.free({"j"}, IdSet{0});
    CHECK(other.text() == "j:1/0-1;b/2-3? k:c/3?");
    CHECK(other.restarted("a,b,c").text() == "j:1/0-3; k:2/3;");
    other.free({"j"}, IdSet{1});
    CHECK(other.text() == "k:c/3?");
  }
  SUBCASE("and all of an allocation") {
    other.free({"j", "k"});
    CHECK(other.text().empty());
    CHECK(other.restarted("a,b,c").text().empty());
  }
}

TEST_CASE("another inventory is loaded with fewer cores, and one with more") {
  World it("a,b");
  it.alloc("j", part("0-1", "0-3", "a,b", "0"));
  it.step(Release{1});
  const auto load = [&](IdSet::Id last_core) {
    module::DefineCommand command;
    command.inventory = cluster("a,b", last_core);
    command.online = command.inventory->ranks();
    it.step(command);
  };
  load(2);
  CHECK(it.text() == "j:0-1/0-2;a/3?b/3?");
  CHECK(it.restarted("a,b", 0).text() == "j:0-1/0;a/1-3?b/1-3?");
  load(1);
  CHECK(it.text() == "j:0-1/0-1;a/2-3?b/2-3?");
  load(7);
  CHECK(it.text() == "j:0-1/0-3;");
}

TEST_CASE("absent cores leave with their target, also where nothing else of it is allocated") {
  World it("a,b,c");
  it.alloc("k", part("2", "3", "c"));
  it.step(Release{1});
  const auto load = [&](const char* hosts, IdSet::Id last_core) {
    module::DefineCommand command;
    command.inventory = cluster(hosts, last_core);
    command.online = command.inventory->ranks();
    it.step(command);
  };
  load("a,b,c", 1);
  CHECK(it.text() == "k:c/3?");
  load("a,b", 1);
  CHECK(it.text() == "k:c/3?");
  load("c,a,b", 3);
  CHECK(it.text() == "k:0/3;");
}

TEST_CASE("the gpu of a target whose cores are all absent is absent with them") {
  World it("a,b");
  it.alloc("j", part("0", "3", "a", "0"));
  it.alloc("k", part("0", "0", "a"));
  it.step(Release{1});
  CHECK(it.restarted("a,b", 1).text() == "j:a/3? k:0/0;");
  module::DefineCommand command;
  command.inventory = cluster("a,b", 1);
  command.online = command.inventory->ranks();
  it.step(command);
  CHECK(it.text() == "j:a/3? k:0/0;");
  const World again = it.restarted("a,b");
  CHECK(again.text() == "j:0/3; k:0/0;");
  CHECK(again.engine.module().ledger().held().gpus.size() == 1);
}

TEST_CASE("hosts that repeat: absent cores stay with their target, whatever it is called") {
  World it("h,h");
  it.alloc("k", part("1", "3", "h"));
  it.step(Release{1});
  const auto load = [&](const IdSet& ranks, IdSet::Id last_core) {
    module::DefineCommand command;
    command.inventory = std::make_shared<const ResourceSet>(
        ResourceSet({{ranks, IdSet::range(0, last_core), IdSet{0}}},
                    text::Hostlist::parse(ranks.count() == 1 ? "h" : "h,h")));
    command.online = command.inventory->ranks();
    it.step(command);
  };
  load(IdSet::range(0, 1), 1);
  CHECK(it.text() == "k:h/3?");
  load(IdSet{1}, 1);
  CHECK(it.text() == "k:h/3?");
  load(IdSet{1}, 3);
  CHECK(it.text() == "k:1/3;");
}

TEST_CASE("hosts that repeat: what was on a target that left is not put on another one of its host") {
  World it("h,h,k");
  it.alloc("z", part("0", "0", "h"));
  it.step(Release{1});
  module::DefineCommand command;
  command.inventory = std::make_shared<const ResourceSet>(
      ResourceSet({{IdSet{1}, IdSet::range(0, 3), IdSet{0}}}, text::Hostlist::parse("h")));
  command.online = command.inventory->ranks();
  it.step(command);
  CHECK(it.text() == "z:h/0?");
}

TEST_CASE("an allocation whose targets were all away comes back with all of its R") {
  World it("a,b,c");
  it.step(module::PropertyCommand{module::PropertyCommand::Op::add, "p", "1"});
  const ResourceSet resources = ResourceSet::parse(
      R"({"version":1,"execution":{"R_lite":[{"rank":"1-2","children":{"core":"0","x":"1"},"y":2}],)"
      R"("nodelist":["b,c"],"nslots":2,"properties":{"p":"1"},"starttime":1.0,"expiration":5000000000.0},)"
      R"("scheduling":{"writer":"x"},"attributes":{"system":{"z":1}}})");
  it.alloc("j", resources);
  const World away = it.restarted("a");
  CHECK(away.text() == "j:b/0?c/0?");
  World some = away.restarted("b,a");
  CHECK(some.text() == "j:0/0;c/0?");
  const auto r_of = [](const World& world) {
    return world.engine.module().ledger().find({"", "j"})->resources.to_json().dump();
  };
  CHECK(r_of(some.restarted("a,b,c")) == resources.to_json().dump());
  // Loading R has the same result as a restart.
  const auto load = [&](std::string_view hosts) {
    module::DefineCommand command;
    command.inventory = cluster(hosts);
    command.online = command.inventory->ranks();
    it.step(command);
  };
  it.step(Release{1});
  load("a");
  CHECK(it.text() == "j:b/0?c/0?");
  load("a,c");
  load("a,b,c");
  CHECK(r_of(it) == resources.to_json().dump());
  CHECK(r_of(it.restarted("a,b,c")) == resources.to_json().dump());
}

// The model is a map from core to id, compared under random requests, restarts and losses of hosts.
TEST_CASE("random requests, restarts and inventories: no core has two holders, and nothing is lost") {
  constexpr int rounds = 8000;
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) { return static_cast<IdSet::Id>(random() % limit); };
  const std::vector<std::string> inventories{"n[0-9]", "n[9,8,7,6,5,4,3,2,1,0]", "x,n[0-9]", "n[0-7]",
                                             "n[2-9]"};
  auto it = std::make_unique<World>(inventories[0]);
  std::map<std::string, std::set<std::pair<std::string, IdSet::Id>>> reference;
  std::set<std::pair<std::string, IdSet::Id>> held;
  std::size_t done = 0;
  std::size_t refused = 0;
  for (int round = 0; round < rounds; ++round) {
    const ResourceSet& inventory = it->engine.module().inventory();
    const std::string id = "j" + std::to_string(below(60));
    if (const auto choice = below(100); choice < 60) {
      IdSet ranks;
      for (IdSet::Id i = 0; i <= below(4); ++i) ranks.insert(below(inventory.ranks().count()));
      IdSet cores;
      for (IdSet::Id i = 0; i <= below(3); ++i) cores.insert(below(4));
      std::set<std::pair<std::string, IdSet::Id>> wanted;
      ranks.for_each([&](IdSet::Id rank) {
        cores.for_each([&](IdSet::Id core) { wanted.emplace(inventory.host(rank), core); });
      });
      const bool is_free =
          std::ranges::none_of(wanted, [&](const auto& core) { return held.contains(core); });
      const int expected = reference.contains(id) ? EEXIST : is_free ? 0 : EBUSY;
      try {
        it->alloc(id, {{{ranks, cores, {}}}, inventory.hosts(ranks)});
        REQUIRE(expected == 0);
        held.insert(wanted.begin(), wanted.end());
        reference.emplace(id, std::move(wanted));
        ++done;
      } catch (const Error& error) {
        REQUIRE(error.errnum() == expected);
        ++refused;
      }
    } else if (choice < 95) {
      const auto found = reference.find(id);
      try {
        it->free({id});
        REQUIRE(found != reference.end());
        for (const auto& core : found->second) held.erase(core);
        reference.erase(found);
      } catch (const Error& error) {
        REQUIRE(error.errnum() == ENOENT);
        REQUIRE(found == reference.end());
      }
    } else {
      it = std::make_unique<World>(inventories[below(inventories.size())],
                                   std::vector<module::PartitionRule>{}, it->fold);
    }
    std::map<std::string, std::set<std::pair<std::string, IdSet::Id>>> present;
    const ResourceSet& now = it->engine.module().inventory();
    for (const auto& [name, allocation] : it->engine.module().ledger().all()) {
      auto& cores = present[name.id];
      for (const auto& group : allocation->resources.groups()) {
        group.ranks.for_each([&](IdSet::Id rank) {
          group.cores.for_each([&](IdSet::Id core) { cores.emplace(now.host(rank), core); });
        });
      }
      for (const auto& absent : allocation->absent)
        absent.cores.for_each([&](IdSet::Id core) { cores.emplace(absent.target.host, core); });
    }
    REQUIRE(present == reference);
  }
  CHECK(done > 400);
  CHECK(refused > 500);
}

}  // namespace
}  // namespace resourced::engine::ledger_tests

// Schedulers with extensions are told more than RFC 28 has: changes of allocations by others, scheduled
// drains, and the causes of `down`.
#include <doctest/doctest.h>

#include "ledger_world.hpp"

namespace resourced::engine::ledger_tests {
namespace {

using module::AllocationName;
using module::AllocationNews;
using module::ByUser;
using module::Command;

constexpr module::Extensions with_ledger{.ledger = true};

/// Two partitions, whose schedulers 1 and 2 have the extension `ledger`.
struct Divided : World {
  Divided() : World("node[0-3]", {{"day", IdSet{0, 1}, {}}, {"night", IdSet{2, 3}, {}}}) {
    step(Acquire{1, "day", true, with_ledger});
    step(Acquire{2, "night", true, with_ledger});
  }
};

/// One scheduler with the extension `ledger`.
struct Whole : World {
  Whole() : World("node[0-3]") {
    step(Release{1});
    step(Acquire{1, {}, true, with_ledger});
  }
};

Effects free_by_operator(World& world, const std::string& id, std::optional<IdSet> ranks = {},
                         std::optional<std::string> partition = {}) {
  return world.step(Command{module::LedgerCommand{{{id, std::move(partition), std::move(ranks)}}}});
}

/// Returns the only news of the only update.
const AllocationNews& only_news(const Effects& effects, HolderId holder, const AllocationName& name) {
  REQUIRE(effects.updates.size() == 1);
  CHECK(effects.updates[0].holder == holder);
  REQUIRE(effects.updates[0].delta.allocations.size() == 1);
  return effects.updates[0].delta.allocations.at(name);
}

TEST_CASE("a scheduler is told of an allocation that an operator frees, with the event that did it") {
  Whole it;
  it.alloc("j1", part("0-1", "0", "node[0-1]"));
  const Effects freed = free_by_operator(it, "j1");
  const AllocationNews& news = only_news(freed, 1, {"", "j1"});
  CHECK_FALSE(news.now);
  CHECK_FALSE(news.own);
  CHECK(freed.updates[0].after == freed.records[0].sequence);
}

TEST_CASE("of a free of some targets, it is told which") {
  Whole it;
  it.alloc("j1", part("0-2", "0", "node[0-2]"));
  const Effects freed = free_by_operator(it, "j1", IdSet{1});
  const AllocationNews& news = only_news(freed, 1, {"", "j1"});
  CHECK(news.freed == IdSet{1});
  CHECK_FALSE(news.whole);
  REQUIRE(news.now);
  CHECK(news.now->resources.ranks() == IdSet{0, 2});
}

TEST_CASE("a scheduler gets the whole of an allocation whose terms an operator changes, and its new time") {
  Whole it;
  it.alloc({{"j1", part("0", "0", "node0"), wall_time(100)}});
  module::LedgerCommand later;
  later.update = module::UpdateRequest{"j1", {}, wall_time(300)};
  const Effects changed = it.step(Command{later});
  const AllocationNews& news = only_news(changed, 1, {"", "j1"});
  CHECK(news.whole);
  CHECK_FALSE(news.own);
  REQUIRE(news.now);
  CHECK(news.now->expiration == wall_time(300));
  CHECK(it.engine.next_due(wall_time(20)) == wall_time(300));
}

TEST_CASE("its own changes are marked, and a scheduler without the extension is told nothing") {
  Whole it;
  CHECK(only_news(it.alloc("j1", part("0", "0", "node0")), 1, {"", "j1"}).own);
  CHECK(only_news(it.free({"j1"}), 1, {"", "j1"}).own);
  World plain("node[0-3]");
  plain.alloc("j1", part("0", "0", "node0"));
  CHECK(free_by_operator(plain, "j1").updates.empty());
}

TEST_CASE("with partitions, the scheduler that made an allocation is told, and nobody without a part in it") {
  Divided it;
  it.alloc("j1", part("2", "0", "node2"), {2});
  CHECK_FALSE(only_news(free_by_operator(it, "j1", {}, "night"), 2, {"night", "j1"}).now);
}

TEST_CASE("a scheduler is told of another one's allocation on a target that it has") {
  World it("node[0-3]", {{"day", IdSet{0, 1}, {}}, {"night", IdSet{2, 3}, {}}});
  it.step(Acquire{1, "day", true, with_ledger});
  it.alloc("j1", part("0-1", "0", "node[0-1]"));
  it.step(Release{1});
  World later("node[0-3]", {{"day", IdSet{0}, {}}, {"night", IdSet{1, 2, 3}, {}}}, it.fold);
  later.step(Acquire{1, "day", true, with_ledger});
  later.step(Acquire{2, "night", true, with_ledger});
  const Effects freed = later.free({"j1"}, {}, {1});
  REQUIRE(freed.updates.size() == 2);
  CHECK(freed.updates[0].holder == 1);
  CHECK(freed.updates[0].delta.allocations.at({"day", "j1"}).own);
  CHECK(freed.updates[1].holder == 2);
  CHECK_FALSE(freed.updates[1].delta.allocations.at({"day", "j1"}).own);
}

TEST_CASE("the first response has all allocations that were made in the partition") {
  Divided it;
  it.alloc("j1", part("2", "0", "node2"), {2});
  it.alloc("j2", part("0", "0", "node0"), {1});
  const auto ids = [&](const char* partition, const IdSet& targets) {
    std::string text;
    for (const module::SharedAllocation& one : it.engine.allocations_of(targets, partition, true))
      text += one->name.id + " ";
    return text;
  };
  CHECK(ids("day", IdSet{0, 1}) == "j2 ");
  CHECK(ids("night", IdSet{3}) == "j1 ");
}

TEST_CASE("an allocation that expires is told once, at its time") {
  Whole it;
  AllocationRequest wanted{"j1", part("0", "0", "node0"), wall_time(100)};
  it.alloc({wanted});
  wanted.id = "j2";
  wanted.resources = part("1", "0", "node1");
  wanted.expiration = wall_time(200);
  it.alloc({wanted});
  CHECK(it.engine.next_due(wall_time(20)) == wall_time(100));
  CHECK(it.step(Tick{}, 99).updates.empty());
  const Effects due = it.step(Tick{}, 100);
  CHECK(due.records.empty());
  const AllocationNews& news = only_news(due, 1, {"", "j1"});
  CHECK(news.expired);
  CHECK(news.now);
  CHECK(it.step(Tick{}, 101).updates.empty());
  CHECK(it.engine.next_due(wall_time(101)) == wall_time(200));
  it.free({"j2"});
  CHECK_FALSE(it.engine.next_due(wall_time(101)));
}

Effects updated(World& it, module::UpdateRequest wanted) {
  module::LedgerCommand command;
  command.update = std::move(wanted);
  return it.step(ChangeLedger{{1}, std::move(command)});
}

TEST_CASE("a scheduler that gives an allocation an expiration that has passed is told that it has expired") {
  Whole it;
  it.step(Tick{}, 100);
  const AllocationNews made =
      only_news(it.alloc({{"j1", part("0", "0", "node0"), wall_time(99)}}), 1, {"", "j1"});
  CHECK_FALSE(made.own);
  CHECK(made.whole);
  module::UpdateRequest note{.id = "j1"};
  note.note = "late";
  CHECK(only_news(updated(it, note), 1, {"", "j1"}).own);
  module::UpdateRequest wanted{.id = "j1"};
  wanted.expiration = wall_time(98);
  CHECK_FALSE(only_news(updated(it, wanted), 1, {"", "j1"}).own);
}

TEST_CASE("a scheduler that has not read that its allocation expired is told that it is freed") {
  Whole it;
  it.step(Tick{}, 100);
  module::Delta pending = it.alloc({{"j1", part("0", "0", "node0"), wall_time(99)}}).updates.at(0).delta;
  pending.merge(free_by_operator(it, "j1").updates.at(0).delta);
  CHECK_FALSE(pending.allocations.at({"", "j1"}).now);
}

TEST_CASE("a scheduler that comes later is not told again what its first response shows as expired") {
  Divided it;
  it.alloc({{"j1", part("0", "0", "node0"), wall_time(100)}}, {1});
  it.step(Release{2}, 50);
  const Effects acquired = it.step(Acquire{2, "night", true, with_ledger}, 150);
  CHECK(only_news(acquired, 1, {"day", "j1"}).expired);
  it.step(Release{1}, 160);
  CHECK(it.step(Acquire{1, "day", true, with_ledger}, 170).updates.empty());
  CHECK(it.step(Tick{}, 180).updates.empty());
}

TEST_CASE("an allocation that expires is told again after the clock was set back before its time") {
  Whole it;
  it.alloc({{"j1", part("0", "0", "node0"), wall_time(100)}});
  it.step(Tick{}, 5000);
  // The engine wants to learn that the clock was set back.
  CHECK(it.engine.next_due(wall_time(50)) == wall_time(50));
  it.step(Tick{}, 50);
  CHECK(it.engine.next_due(wall_time(50)) == wall_time(100));
  CHECK(only_news(it.step(Tick{}, 100), 1, {"", "j1"}).expired);
}

module::DrainCommand drain(const char* targets, std::optional<double> from = {}) {
  module::DrainCommand command{{"power"}, targets};
  if (from) command.from = wall_time(*from);
  return command;
}

TEST_CASE("a scheduler gets all scheduled drains of its targets each time that these change") {
  World it("node[0-3]", {{"day", IdSet{0, 1}, {}}, {"night", IdSet{2, 3}, {}}});
  it.step(Acquire{1, "day", false, {.scheduled = true}});
  it.step(Acquire{2, "night", false, {.scheduled = true}});
  CHECK(it.step(Command{drain("2", 500)}).updates.at(0).holder == 2);
  const Effects scheduled = it.step(Command{drain("1-2", 400)});
  REQUIRE(scheduled.updates.size() == 2);
  REQUIRE(scheduled.updates[0].delta.scheduled);
  CHECK(scheduled.updates[0].delta.scheduled->size() == 1);
  CHECK(scheduled.updates[0].delta.scheduled->begin()->second == IdSet{1});
  REQUIRE(scheduled.updates[1].delta.scheduled);
  CHECK(scheduled.updates[1].delta.scheduled->size() == 2);
  CHECK(it.engine.scheduled_for(IdSet{2, 3}) == *scheduled.updates[1].delta.scheduled);
  const Effects begun = it.step(Tick{}, 400);
  bool told = false;
  for (const Update& update : begun.updates) {
    if (update.holder != 1 || !update.delta.scheduled) continue;
    told = true;
    CHECK(update.delta.scheduled->empty());
  }
  CHECK(told);
}

TEST_CASE("the loss of a target for good takes its scheduled drains away") {
  World it("node[0-3]");
  it.step(Release{1});
  it.step(Acquire{1, {}, false, {.scheduled = true}});
  it.step(Command{drain("1-2", 400)});
  module::ShrinkCommand shrink;
  shrink.targets = "1";
  const Effects left = it.step(Command{shrink});
  bool told = false;
  for (const Update& update : left.updates) {
    if (!update.delta.scheduled) continue;
    told = true;
    CHECK(update.delta.scheduled->begin()->second == IdSet{2});
  }
  CHECK(told);
}

}  // namespace
}  // namespace resourced::engine::ledger_tests

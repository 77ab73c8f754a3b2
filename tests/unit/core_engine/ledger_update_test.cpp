// Changes of an allocation: its expiration, its note, and further resources.
#include <doctest/doctest.h>

#include "ledger_world.hpp"

namespace resourced::engine::ledger_tests {
namespace {

using module::UpdateRequest;

Effects update(World& it, UpdateRequest wanted, bool repeat = false, std::vector<HolderId> holders = {1}) {
  module::LedgerCommand command;
  command.update = std::move(wanted);
  command.repeat = repeat;
  return it.step(ChangeLedger{std::move(holders), std::move(command)});
}

Effects operator_updates(World& it, UpdateRequest wanted) {
  module::LedgerCommand command;
  command.update = std::move(wanted);
  return it.step(command);
}

const module::Allocation& allocation_of(const World& it, const char* id, const char* partition = "") {
  return *it.engine.module().ledger().find({partition, id});
}

TEST_CASE("an expiration and a note are changed and removed, by one event with the hosts") {
  World it("node[0-3]");
  it.alloc({{"j", part("1-2", "0", "node[1-2]"), wall_time(50), "x"}});
  const Effects changed = update(it, {"j", {}, wall_time(60), "y"});
  REQUIRE(changed.records.size() == 1);
  CHECK(is_of_ledger(changed.records[0].event.body));
  CHECK(changed.records[0].ranks == IdSet::parse("1-2"));
  CHECK(changed.records[0].hosts.encode() == "node[1-2]");
  CHECK(allocation_of(it, "j").expiration == wall_time(60));
  CHECK(allocation_of(it, "j").note == "y");
  CHECK(allocation_of(it.restarted("node[0-3]"), "j").note == "y");
  update(it, {"j", {}, {}, ""});
  CHECK(allocation_of(it, "j").expiration == wall_time(60));
  CHECK_FALSE(allocation_of(it, "j").note);
  update(it, {"j", {}, WallTime{}});
  CHECK_FALSE(allocation_of(it, "j").expiration);
  // What is so already changes nothing.
  CHECK(update(it, {"j", {}, WallTime{}, ""}).records.empty());
  CHECK(it.text() == "j:1-2/0;");
}

TEST_CASE("further cores and targets are added as those of an alloc are") {
  World it("node[0-3]");
  it.alloc("j", part("1", "0", "node1"));
  it.alloc("k", part("2", "0", "node2"));
  const auto adds = [](const char* ranks, const char* cores, const char* hosts) {
    return UpdateRequest{"j", {}, {}, {}, part(ranks, cores, hosts)};
  };
  const Effects added = update(it, adds("1,3", "1-2", "node[1,3]"));
  REQUIRE(added.records.size() == 1);
  CHECK(added.records[0].hosts.encode() == "node[1,3]");
  CHECK(it.text() == "j:1/0-2;3/1-2; k:2/0;");
  CHECK(it.restarted("node[0-3]").text() == it.text());
  CHECK(it.engine.module().ledger().ranks() == IdSet::parse("1-3"));
  CHECK(it.refusal(EBUSY, [&] { update(it, adds("1", "2", "node1")); }) ==
        "node1 core2 is held by allocation j");
  CHECK(it.refusal(EBUSY, [&] { update(it, adds("2", "0", "node2")); }) ==
        "node2 core0 is held by allocation k");
  CHECK(it.refusal(EINVAL, [&] { update(it, adds("2", "1", "node3")); }) == "rank 2 is node2, not node3");
  CHECK(it.refusal(EINVAL, [&] { update(it, adds("9", "1", "node9")); }) == "rank 9 is not in the inventory");
  CHECK(it.refusal(EINVAL, [&] {
    update(it, {"j", {}, {}, {}, ResourceSet()});
  }) == "allocation j: R has no targets");
  ResourceSet scheduled = part("2", "1", "node2");
  scheduled.set_scheduling(R"({"x":1})");
  CHECK(it.refusal(EINVAL, [&] {
    update(it, {"j", {}, {}, {}, scheduled});
  }) == "allocation j: add has scheduling");
  it.step(module::DrainCommand{{}, "node2", {}});
  CHECK(it.refusal(EHOSTDOWN, [&] { update(it, adds("2", "1", "node2")); }) == "rank 2 (node2) is drained");
  CHECK(it.refusal(ENOENT, [&] { update(it, {"x", {}, {}, "y"}); }) == "unknown allocation: x");
  // With the same request again, all that is there counts as added.
  CHECK(update(it, adds("1,3", "1-2", "node[1,3]"), true).records.empty());
  CHECK(update(it, adds("0-1", "1", "node[0-1]"), true).records.size() == 1);
  CHECK(it.text() == "j:0/1;1/0-2;3/1-2; k:2/0;");
  it.free({"j"});
  it.alloc("j", part("0-1,3", "0-3", "node[0-1,3]"));
}

ResourceSet one_more() {
  ResourceSet one = part("1", "2", "node1");
  one.set_nslots(1);
  return one;
}

TEST_CASE("a repeated change that was made counts as made, although it would be refused by now") {
  World it("node[0-3]");
  it.alloc("j", part("1", "0", "node1"));
  const UpdateRequest wanted{"j", {}, wall_time(90), {}, part("1-2", "1", "node[1-2]")};
  update(it, wanted);
  it.step(module::ExpirationCommand{wall_time(80)});
  it.step(module::DrainCommand{{}, "node2", {}});
  CHECK(update(it, wanted, true).records.empty());
  CHECK(it.refusal(EHOSTDOWN, [&] { update(it, wanted); }) == "rank 2 (node2) is drained");
  CHECK(it.refusal(EINVAL, [&] { update(it, {"j", {}, wall_time(91)}, true); }) != "done");
  CHECK(it.refusal(EINVAL, [&] {
    update(it, {"j", {}, {}, {}, part("1", "1", "node3")}, true);
  }) == "rank 1 is node1, not node3");
}

TEST_CASE("a repeated addition that was made counts as made, also if its targets have left") {
  World it("node[0-3]");
  it.alloc("j", part("1", "0", "node1"));
  const UpdateRequest wanted{"j", {}, {}, {}, part("1-2", "1", "node[1-2]")};
  update(it, wanted);
  it.step(module::ShrinkCommand{"2"});
  CHECK(update(it, wanted, true).records.empty());
  CHECK(it.refusal(EINVAL, [&] { update(it, wanted); }) == "rank 2 is not in the inventory");
  const UpdateRequest more{"j", {}, {}, {}, part("1-2", "1-2", "node[1-2]")};
  CHECK(it.refusal(EINVAL, [&] { update(it, more, true); }) == "rank 2 is not in the inventory");
}

TEST_CASE("gpus that are left of a repeated addition without their cores are refused") {
  World it("node[0-3]");
  it.alloc("j", part("1", "0", "node1"));
  const UpdateRequest wanted{"j", {}, {}, {}, part("1", "0", "node1", "0")};
  CHECK(it.refusal(EINVAL, [&] { update(it, wanted, true); }) != "done");
}

TEST_CASE("the slots of an addition are further ones, or the number of all is not known") {
  World it("node[0-3]");
  ResourceSet one = part("1", "0", "node1");
  one.set_nslots(1);
  it.alloc("j", one);
  ResourceSet two = part("2-3", "0", "node[2-3]");
  two.set_nslots(2);
  update(it, {"j", {}, {}, {}, two});
  CHECK(allocation_of(it, "j").resources.nslots() == 3);
  ResourceSet too_many = part("1", "1", "node1");
  too_many.set_nslots(~std::uint64_t{0});
  update(it, {"j", {}, {}, {}, too_many});
  CHECK_FALSE(allocation_of(it, "j").nslots);
  it.alloc("k", one_more());
  update(it, {"k", {}, {}, {}, part("1", "3", "node1")});
  CHECK_FALSE(allocation_of(it, "k").nslots);
}

TEST_CASE("the scheduler of its partition changes an allocation, or an operator, who adds nothing") {
  World it("node[0-3]", {{"day", IdSet::parse("0-1"), {}}, {"night", IdSet::parse("2-3"), {}}});
  it.step(Acquire{1, "day"});
  it.step(Acquire{2, "night"});
  it.alloc("j", part("0", "0", "node0"));
  CHECK(it.refusal(EPERM, [&] {
    update(it, {"j", "day", {}, "x"}, false, {2});
  }) == "allocation j of partition day is of another scheduler");
  CHECK(it.refusal(EPERM, [&] { update(it, {"j", {}, {}, "x"}, false, {}); }) == "no resources are acquired");
  CHECK(it.refusal(EPERM, [&] {
    update(it, {"j", {}, {}, {}, part("2", "0", "node2")});
  }) == "rank 2 (node2) is not acquired");
  CHECK(it.refusal(EPERM, [&] {
    update(it, {"j", "day", {}, {}, part("2", "0", "node2")}, false, {1, 2});
  }) == "allocation j: rank 2 (node2) is of another acquisition; make one of each");
  operator_updates(it, {"j", "day", {}, "x"});
  CHECK(allocation_of(it, "j", "day").note == "x");
  CHECK(it.refusal(EINVAL, [&] {
    operator_updates(it, {"j", {}, {}, "y"});
  }) == "name the partition of allocation j, one of: \"day\"");
  CHECK(it.refusal(EPERM, [&] {
    operator_updates(it, {"j", "day", {}, {}, part("1", "0", "node1")});
  }) == "partition \"day\" is not acquired");
}

TEST_CASE("the terms of an update are checked as those of an alloc") {
  World it("node[0-3]");
  it.alloc("j", part("0", "0", "node0"));
  CHECK(it.refusal(EINVAL, [&] {
    update(it, {"j", {}, {}, std::string(1025, 'x')});
  }) == "allocation j: the note has 1025 bytes, more than 1024");
  it.step(module::ExpirationCommand{wall_time(100)});
  CHECK(it.refusal(EINVAL, [&] {
    update(it, {"j", {}, wall_time(101)});
  }) == "allocation j: expiration 101 is after that of the resource set, 100");
  CHECK(it.refusal(EINVAL, [&] {
    update(it, {"j", {}, wall_time(-1)});
  }) == "allocation j: expiration must be a time, or 0 for none");
}

}  // namespace
}  // namespace resourced::engine::ledger_tests

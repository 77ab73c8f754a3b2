// The ledger of allocations: which requests are refused with which text, and what an allocation keeps.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ledger_world.hpp"

namespace resourced::engine::ledger_tests {
namespace {

TEST_CASE("an allocation is one record, which has its targets") {
  World it("node[0-3]");
  const Effects effects = it.alloc("j17", part("1-2", "0-1", "node[1-2]", "0"));
  REQUIRE(effects.records.size() == 1);
  const Record& record = effects.records[0];
  CHECK(is_of_ledger(record.event.body));
  CHECK(record.ranks == IdSet::parse("1-2"));
  CHECK(record.hosts.encode() == "node[1-2]");
  CHECK(std::get<module::AllocEvent>(record.event.body).allocations[0]->name.id == "j17");
  CHECK(it.engine.module().ledger().ranks() == IdSet::parse("1-2"));
  const Effects freed = it.free({"j17"});
  REQUIRE(freed.records.size() == 1);
  CHECK(is_of_ledger(freed.records[0].event.body));
  CHECK(freed.records[0].hosts.encode() == "node[1-2]");
  CHECK(it.text().empty());
  CHECK(it.engine.module().ledger().ranks().empty());
  CHECK(it.fold.state.ledger.empty());
}

TEST_CASE("the ledger changes no state of a target, and no scheduler is told of it") {
  World it("node[0-3]");
  const auto version = it.engine.module().state_version();
  CHECK(it.alloc("j1", part("0", "0", "node0")).updates.empty());
  CHECK(it.engine.module().state_version() == version);
  CHECK(it.engine.module().available() == IdSet::parse("0-3"));
}

TEST_CASE("a core or gpu has one holder, whom the refusal names with the host") {
  World it("node[0-3]");
  it.alloc("j17", part("3", "2-3", "node3", "0"));
  it.alloc("j18", part("3", "0", "node3"));
  CHECK(it.refusal(EBUSY, [&] { it.alloc("j19", part("2-3", "1-2", "node[2-3]")); }) ==
        "node3 core2 is held by allocation j17");
  CHECK(it.refusal(EBUSY, [&] { it.alloc("j19", part("0-3", "0-3", "node[0-3]")); }) ==
        "node3 core0 is held by allocation j18");
  CHECK(it.refusal(EBUSY, [&] { it.alloc("j19", part("3", "1", "node3", "0")); }) ==
        "node3 gpu0 is held by allocation j17");
  it.alloc("j19", part("2-3", "1", "node[2-3]"));
  it.free({"j17"});
  it.alloc("j20", part("3", "2", "node3", "0"));
}

TEST_CASE("an id is taken as long as its allocation is there") {
  World it("node[0-1]");
  it.alloc("j1", part("0", "0", "node0"));
  CHECK(it.refusal(EEXIST, [&] { it.alloc("j1", part("1", "0", "node1")); }) ==
        "allocation j1 exists already");
  it.free({"j1"});
  it.alloc("j1", part("1", "0", "node1"));
}

TEST_CASE("an id has 1 to 64 printable characters") {
  World it("node[0-1]");
  const char* const text = "the id of an allocation must have 1 to 64 printable characters";
  for (const std::string& id : {std::string(), std::string(65, 'x'), std::string("a\nb"), std::string("\x7f"),
                                std::string("\xc2\x85")}) {
    CHECK(it.refusal(EINVAL, [&] { it.alloc(id, part("0", "0", "node0")); }) == text);
  }
  std::string many;
  for (int i = 0; i < 64; ++i) many += "\xc6\x92";
  it.alloc(many, part("0", "0", "node0"));
  it.alloc(std::string(64, 'x'), part("0", "1", "node0"));
  CHECK(it.refusal(EINVAL, [&] { it.alloc(many + "x", part("0", "2", "node0")); }) == text);
}

TEST_CASE("where kinds of nodes alternate, each target is compared with its own kind") {
  World it(std::make_shared<const ResourceSet>(
      std::vector<rset::ResourceGroup>{{IdSet::parse("0,2,4"), IdSet::parse("0-1"), {}},
                                       {IdSet::parse("1,3,5"), IdSet::parse("0-3"), IdSet{0}}},
      text::Hostlist::parse("node[0-5]")));
  CHECK(it.refusal(EINVAL, [&] { it.alloc("j", part("1-2", "3", "node[1-2]")); }) == "node2 has no core3");
  CHECK(it.refusal(EINVAL, [&] { it.alloc("j", part("3-5", "1", "node[3-5]", "0")); }) ==
        "node4 has no gpu0");
  CHECK(it.refusal(EINVAL, [&] { it.alloc("j", part("5", "4", "node5")); }) == "node5 has no core4");
  it.alloc("j", part("1,3,5", "2-3", "node[1,3,5]", "0"));
  it.alloc("k", part("0-5", "0-1", "node[0-5]"));
  CHECK(it.text() == "j:1,3,5/2-3; k:0-5/0-1;");
}

TEST_CASE("only resources of the inventory, on the hosts of their ranks") {
  World it("node[0-3]");
  CHECK(it.refusal(EINVAL, [&] { it.alloc("j", part("3-4", "0", "node[3-4]")); }) ==
        "rank 4 is not in the inventory");
  CHECK(it.refusal(EINVAL, [&] { it.alloc("j", part("0-2", "0", "node[0,2-3]")); }) ==
        "rank 1 is node1, not node2");
  CHECK(it.refusal(EINVAL, [&] { it.alloc("j", part("1-2", "3-4", "node[1-2]")); }) == "node1 has no core4");
  CHECK(it.refusal(EINVAL, [&] { it.alloc("j", part("2", "3", "node2", "0-1")); }) == "node2 has no gpu1");
  CHECK(it.refusal(EINVAL, [&] { it.alloc("j", ResourceSet()); }) == "allocation j: R has no targets");
}

TEST_CASE("only targets that the sender holds") {
  World it("node[0-3]", {{"left", IdSet::parse("0-1"), {}}, {"right", IdSet::parse("2-3"), {}}});
  it.step(Acquire{1, "left"});
  it.step(Acquire{2, "right"});
  CHECK(it.refusal(EPERM, [&] { it.alloc("j", part("1-2", "0", "node[1-2]")); }) ==
        "rank 2 (node2) is not acquired");
  CHECK(it.refusal(EPERM, [&] { it.alloc("j", part("0", "0", "node0"), {}); }) ==
        "no resources are acquired");
  it.alloc("j", part("1", "0", "node1"));
  CHECK(it.refusal(EPERM, [&] { it.free({"j"}, IdSet{1}, {2}, "left"); }) ==
        "allocation j of partition left: rank 1 (node1) is not acquired");
  it.free({"j"});
}

TEST_CASE("a target is reported about while its holder is a scheduler that keeps the ledger") {
  World world("n[0-7]", {{"day", IdSet::range(0, 3), {}}, {"night", IdSet::range(4, 5), {}}});
  const auto reported = [&] { return world.engine.acquisition().reported().encode(); };
  std::uint64_t version = world.engine.acquisition().reported_version();
  const auto has_changed = [&] {
    const std::uint64_t before = std::exchange(version, world.engine.acquisition().reported_version());
    return version != before;
  };
  world.step(Acquire{1, "day"});
  CHECK(reported() == "");
  world.step(Acquire{2, "night", true});
  CHECK(reported() == "4-5");
  CHECK(has_changed());
  world.step(Acquire{3, std::nullopt, true});
  CHECK(reported() == "4-7");
  world.step(Release{1});
  world.step(Acquire{4, "day", true});
  CHECK(reported() == "0-7");
  CHECK(has_changed());
  world.step(module::ShrinkCommand{"5"});
  CHECK(reported() == "0-4,6-7");
  CHECK(has_changed());
  world.step(Release{2});
  CHECK(reported() == "0-3,6-7");
  CHECK(has_changed());
}

TEST_CASE("allocations of a partition without a scheduler wait for the next one") {
  World it("node[0-3]", {{"left", IdSet::parse("0-1"), {}}, {"right", IdSet::parse("2-3"), {}}});
  it.step(Acquire{1, "left"});
  it.step(Acquire{2, "right"});
  it.alloc("j", part("1", "0", "node1"));
  it.step(Release{1});
  CHECK(it.refusal(EPERM, [&] { it.free({"j"}, IdSet{1}, {2}, "left"); }) ==
        "allocation j of partition left: rank 1 (node1) is not acquired");
  it.step(Acquire{3, "left"});
  it.free({"j"}, {}, {3});
}

const std::vector<module::PartitionRule> day_and_night{{"day", IdSet::parse("0-1"), {}},
                                                       {"night", IdSet::parse("2-3"), {}}};

TEST_CASE("each partition has ids of its own") {
  World it("node[0-4]", day_and_night);
  it.step(Acquire{1, "day"});
  it.step(Acquire{2, "night"});
  it.step(Acquire{3, std::nullopt});
  it.alloc("1", part("0-1", "0", "node[0-1]"), {1});
  it.alloc("1", part("2", "0", "node2"), {2});
  it.alloc("1", part("4", "0", "node4"), {3});
  CHECK(it.refusal(EEXIST, [&] { it.alloc("1", part("3", "0", "node3"), {2}); }) ==
        "allocation 1 of partition night exists already");
  CHECK(it.refusal(EBUSY, [&] { it.alloc("2", part("2", "0", "node2"), {2}); }) ==
        "node2 core0 is held by allocation 1 of partition night");
  CHECK(it.text() == "1:4/0; day/1:0-1/0; night/1:2/0;");
  CHECK(it.restarted("node[0-4]").text() == it.text());
  const Effects freed = it.free({"1"}, {}, {2});
  CHECK(std::get<module::FreeEvent>(freed.records[0].event.body).partition == "night");
  CHECK(it.text() == "1:4/0; day/1:0-1/0;");
  it.free({"1"}, IdSet{1}, {1});
  CHECK(it.text() == "1:4/0; day/1:0/0;");
}

TEST_CASE("a scheduler with several acquisitions names the partition of what it frees") {
  World it("node[0-3]", day_and_night);
  it.step(Acquire{1, "day"});
  it.step(Acquire{2, "night"});
  it.alloc("1", part("0", "0", "node0"), {1, 2});
  it.alloc("1", part("3", "0", "node3"), {1, 2});
  it.alloc("2", part("2", "0", "node2"), {1, 2});
  CHECK(it.text() == "day/1:0/0; night/1:3/0; night/2:2/0;");
  // An allocation lies in one acquisition, and its partition may be named.
  CHECK(it.refusal(EPERM, [&] {
    it.alloc("3", part("1-2", "1", "node[1-2]"), {1, 2});
  }) == "allocation 3: rank 2 (node2) is of another acquisition; make one of each");
  const auto alloc_in = [&](const char* partition) {
    it.alloc({{"3", part("1", "1", "node1"), {}, {}, partition}}, {1, 2});
  };
  CHECK(it.refusal(EPERM, [&] { alloc_in("night"); }) ==
        "allocation 3: rank 1 (node1) is of another acquisition; make one of each");
  CHECK(it.refusal(EPERM, [&] { alloc_in("dusk"); }) == "partition \"dusk\" is not acquired");
  alloc_in("day");
  CHECK(it.refusal(EINVAL, [&] {
    it.free({"1"}, {}, {1, 2});
  }) == "name the partition of allocation 1, one of: \"day\", \"night\"");
  CHECK(it.refusal(EINVAL, [&] {
    it.free({"2"}, {}, {1, 2});
  }) == "name the partition of allocation 2, one of: \"night\"");
  CHECK(it.refusal(ENOENT, [&] { it.free({"4"}, {}, {1, 2}); }) == "unknown allocation: 4");
  it.free({"1"}, {}, {1, 2}, "night");
  CHECK(it.text() == "day/1:0/0; day/3:1/1; night/2:2/0;");
}

TEST_CASE("where there are partitions, an operator has to name the partition of an allocation to free it") {
  World it("node[0-4]", day_and_night);
  it.step(Acquire{1, "day"});
  it.step(Acquire{2, std::nullopt});
  it.alloc("1", part("0", "0", "node0"), {1});
  it.alloc("1", part("4", "0", "node4"), {2});
  it.alloc("2", part("4", "1", "node4"), {2});
  CHECK(it.refusal(EINVAL, [&] { it.force_free({"1"}); }) ==
        "name the partition of allocation 1, one of: \"\" (no partition), \"day\"");
  CHECK(it.refusal(EINVAL, [&] { it.force_free({"2"}); }) ==
        "name the partition of allocation 2, one of: \"\" (no partition)");
  CHECK(it.refusal(ENOENT, [&] { it.force_free({"3"}); }) == "unknown allocation: 3");
  CHECK(it.refusal(ENOENT, [&] { it.force_free({"2"}, "day"); }) == "unknown allocation: 2 of partition day");
  it.force_free({"1", "2"}, "");
  CHECK(it.text() == "day/1:0/0;");
  it.force_free({"1"}, "day");
  CHECK(it.text().empty());
}

TEST_CASE("a free of an earlier version means the only allocation with its id") {
  World it("node[0-3]", day_and_night);
  it.step(Acquire{1, "day"});
  it.step(Acquire{2, "night"});
  it.alloc("1", part("0", "0", "node0"), {1});
  it.alloc("1", part("2", "0", "node2"), {2});
  it.alloc("2", part("3", "0", "node3"), {2});
  module::State state = it.engine.module().state();
  const auto free = [](const char* id) {
    return module::Event{wall_time(30), module::FreeEvent{{id}, IdSet{3}, text::Hostlist::parse("node3")}};
  };
  CHECK_THROWS_AS(module::require_next(state, free("1").body), Error);
  module::require_next(state, free("2").body);
  (void)module::apply(state, free("2"));
  CHECK(state.ledger.all().size() == 2);
  CHECK(state.ledger.ranks() == IdSet::parse("0,2"));
}

TEST_CASE("all of a request or none") {
  World it("node[0-3]");
  it.alloc("j0", part("3", "0", "node3"));
  CHECK(it.refusal(EBUSY, [&] {
    it.alloc({{"j1", part("0", "0", "node0")}, {"j2", part("3", "0-1", "node3")}});
  }) == "node3 core0 is held by allocation j0");
  CHECK(it.refusal(EBUSY, [&] {
    it.alloc({{"j1", part("0", "0", "node0")}, {"j2", part("0-1", "0-1", "node[0-1]")}});
  }) == "node0 core0 is held by allocation j1");
  CHECK(it.refusal(EEXIST, [&] {
    it.alloc({{"j1", part("0", "0", "node0")}, {"j1", part("1", "0", "node1")}});
  }) == "allocation j1 is named twice");
  CHECK(it.alloc({{"j1", part("0", "0", "node0")}, {"j2", part("0", "1", "node0")}}).records.size() == 1);
  CHECK(it.refusal(ENOENT, [&] { it.free({"j1", "j9"}); }) == "unknown allocation: j9");
  CHECK(it.refusal(EINVAL, [&] { it.free({"j1", "j1"}); }) == "allocation j1 is named twice");
  CHECK(it.free({"j1", "j2"}).records.size() == 1);
  CHECK(it.text() == "j0:3/0;");
}

TEST_CASE("a part of an allocation is freed by rank; nothing left ends it") {
  World it("node[0-3]");
  it.alloc("j", part("0-3", "0-1", "node[0-3]"));
  CHECK(it.free({"j"}, IdSet::parse("1-2")).records[0].ranks == IdSet::parse("1-2"));
  CHECK(it.text() == "j:0,3/0-1;");
  CHECK(it.restarted("node[0-3]").text() == it.text());
  it.alloc("k", part("1", "0", "node1"));
  CHECK(it.refusal(EINVAL, [&] { it.free({"j"}, IdSet::parse("0-1")); }) == "rank 1 is not in allocation j");
  CHECK(it.refusal(EINVAL, [&] { it.free({"j"}, IdSet{}); }) == "allocation j: ranks is empty");
  it.free({"j"}, IdSet::parse("0,3"));
  CHECK(it.text() == "k:1/0;");
}

TEST_CASE("drained, offline and removed targets keep their allocations until they are freed") {
  World it("node[0-3]");
  it.alloc("j", part("0-3", "0", "node[0-3]"));
  it.step(module::DrainCommand{{}, "node0", {}});
  module::MonitorCommand monitor;
  monitor.offline = IdSet{1};
  it.step(monitor);
  it.step(module::ShrinkCommand{"node2"});
  CHECK(it.text() == "j:0-3/0;");
  CHECK(it.restarted("node[0-3]").text() == it.text());
  // Nobody can acquire a target that has left, but its allocation can be freed.
  CHECK(it.refusal(EINVAL, [&] { it.alloc("k", part("2", "1", "node2")); }) ==
        "rank 2 is not in the inventory");
  it.free({"j"}, IdSet{2});
  it.free({"j"});
  CHECK(it.text().empty());
}

TEST_CASE("nothing more is allocated on a target that is drained or excluded") {
  World it("node[0-3]");
  it.alloc("j", part("3", "0", "node3"));
  it.step(module::DrainCommand{{}, "node3", {}});
  CHECK(it.refusal(EHOSTDOWN, [&] { it.alloc("k", part("2-3", "1", "node[2-3]")); }) ==
        "rank 3 (node3) is drained");
  module::ReloadCommand reload;
  reload.exclude = IdSet{1};
  it.step(reload);
  CHECK(it.refusal(EHOSTDOWN, [&] {
    it.alloc({{"k", part("0", "1", "node0")}, {"l", part("0-1", "0", "node[0-1]")}});
  }) == "rank 1 (node1) is excluded");
  CHECK(it.text() == "j:3/0;");
  it.step(module::UndrainCommand{"node3", {}, {}});
  it.alloc("k", part("2-3", "1", "node[2-3]"));
  // Offline and torpid targets can be allocated, as they may return before the job starts.
  module::MonitorCommand monitor;
  monitor.offline = IdSet{0};
  monitor.torpid = IdSet{2};
  it.step(monitor);
  it.alloc("l", part("0,2", "2", "node[0,2]"));
}

TEST_CASE("an allocation of targets that have all left is of the partition that made it") {
  World it("node[0-3]", {{"left", IdSet::parse("0-1"), {}}, {"right", IdSet::parse("2-3"), {}}});
  it.step(Acquire{1, "left"});
  it.step(Acquire{2, "right"});
  it.alloc("j", part("1", "0", "node1"));
  it.step(module::ShrinkCommand{"node1"});
  CHECK(it.refusal(EPERM, [&] { it.free({"j"}, {}, {2}, "left"); }) ==
        "allocation j of partition left is of another scheduler: free the targets that you have by their "
        "ranks");
  it.free({"j"}, {}, {1});
}

TEST_CASE("where there are no partitions any more, the one scheduler frees what theirs had allocated") {
  World divided("node[0-3]", {{"left", IdSet::parse("0-1"), {}}});
  divided.step(Acquire{1, "left"});
  divided.alloc("j", part("1", "0", "node1"));
  World whole("node[0-3]", {}, divided.fold);
  CHECK(whole.refusal(ENOENT, [&] { whole.free({"j"}); }) ==
        "unknown allocation: j; partitions that have this id: \"left\"");
  whole.free({"j"}, {}, {1}, "left");
  CHECK(whole.engine.module().ledger().empty());
}

TEST_CASE("when a target changes its partition, its allocations are freed by both that they concern") {
  const auto with = [](const char* property) {
    return module::PartitionRule{property, std::nullopt, constraint::parse_query(property)};
  };
  World it("node[0-3]", {with("day"), with("night")});
  using Op = module::PropertyCommand::Op;
  it.step(module::PropertyCommand{Op::add, "day", "0-2"});
  it.step(module::PropertyCommand{Op::add, "night", "3"});
  it.step(Acquire{1, "day"});
  it.step(Acquire{2, "night"});
  it.alloc("j", part("1-2", "0", "node[1-2]"));
  it.alloc("k", part("0,2", "1", "node[0,2]"));
  it.alloc("l", part("2", "2", "node2"));
  it.step(module::PropertyCommand{Op::remove, "day", "2"});
  it.step(module::PropertyCommand{Op::add, "night", "2"});
  // The holder of the target's new partition has no right to free its allocation yet.
  CHECK(it.refusal(EPERM, [&] { it.free({"l"}, IdSet{2}, {2}, "day"); }) ==
        "allocation l of partition day: rank 2 (node2) is not acquired");
  it.step(Release{1});
  it.step(Release{2});
  it.step(Acquire{3, "day"});
  it.step(Acquire{4, "night"});
  REQUIRE(it.engine.acquisition().held_by(4)->kept == IdSet::parse("2-3"));
  // The scheduler of the partition that has allocated targets frees them, even if a target is in another
  // partition now.
  it.free({"j"}, {}, {3});
  it.free({"k"}, IdSet{2}, {3});
  // The present holder of a target frees that target, and no other one.
  CHECK(it.refusal(EPERM, [&] { it.free({"k"}, IdSet{0}, {4}, "day"); }) ==
        "allocation k of partition day: rank 0 (node0) is not acquired");
  CHECK(
      it.refusal(EPERM, [&] { it.free({"l"}, {}, {4}, "day"); }) ==
      "allocation l of partition day is of another scheduler: free the targets that you have by their ranks");
  CHECK(it.refusal(ENOENT, [&] { it.free({"l"}, IdSet{2}, {4}); }) ==
        "unknown allocation: l of partition night; partitions that have this id: \"day\"");
  it.free({"l"}, IdSet{2}, {4}, "day");
  CHECK(it.text() == "day/k:0/1;");
}

TEST_CASE("a part that nobody can acquire is freed by the scheduler of its partition alone") {
  const auto with = [](const char* property) {
    return module::PartitionRule{property, std::nullopt, constraint::parse_query(property)};
  };
  World it("node[0-3]", {with("day")});
  using Op = module::PropertyCommand::Op;
  it.step(module::PropertyCommand{Op::add, "day", "0-1"});
  it.step(Acquire{1, "day"});
  it.alloc("j", part("0-1", "0", "node[0-1]"));
  it.step(Release{1});
  it.step(module::PropertyCommand{Op::remove, "day", "1"});
  module::ReloadCommand exclude;
  exclude.exclude = IdSet{0};
  it.step(module::Command(exclude));
  it.step(Acquire{2, std::nullopt});
  it.step(Acquire{3, "day"});
  CHECK(it.refusal(EPERM, [&] { it.free({"j"}, IdSet{0}, {2}, "day"); }) ==
        "allocation j of partition day: rank 0 (node0) is not acquired");
  it.free({"j"}, IdSet{1}, {2}, "day");
  it.free({"j"}, {}, {3});
  CHECK(it.text().empty());
}

TEST_CASE("an operator frees any allocation") {
  World it("node[0-3]");
  it.alloc("j", part("1", "0", "node1"));
  it.step(Release{1});
  CHECK(is_of_ledger(it.force_free({"j"}).records[0].event.body));
  CHECK(it.text().empty());
}

TEST_CASE("R keeps the keys that the daemon has no use for") {
  World it("node[0-3]");
  ResourceSet resources = ResourceSet::parse(
      R"({"version":1,"execution":{"R_lite":[{"rank":"1-2","children":{"core":"0"}}],"nodelist":["node[1-2]"],)"
      R"("nslots":2},"scheduling":{"writer":"x","graph":{"nodes":[]}}})");
  it.alloc("j", resources);
  const World other = it.restarted("x,node[0-3]");
  const module::Allocation& allocation = *other.engine.module().ledger().find({"", "j"});
  CHECK(allocation.resources.ranks().encode() == "2-3");
  CHECK(allocation.resources.nslots() == 2);
  CHECK(allocation.resources.to_json()["scheduling"]["writer"] == "x");
}

TEST_CASE("expiration and note are kept, and an expired allocation stays") {
  World it("node[0-3]");
  it.alloc({{"j", part("0", "0", "node0"), wall_time(30), "a note"}});
  it.step(module::DrainCommand{{}, "3", {}}, 1000);
  const World other = it.restarted("node[0-3]");
  const module::Allocation& allocation = *other.engine.module().ledger().find({"", "j"});
  CHECK(allocation.expiration == wall_time(30));
  CHECK(allocation.note == "a note");
  CHECK(it.refusal(EINVAL, [&] {
    it.alloc({{"k", part("1", "0", "node1"), {}, std::string(1025, 'x')}});
  }) == "allocation k: the note has 1025 bytes, more than 1024");
}

TEST_CASE("the work of a request is bounded, and one allocation of all targets is within the bound") {
  World it("node[0-16383]", {}, {}, 19);
  IdSet every_second;
  for (IdSet::Id rank = 0; rank < 16384; rank += 2) every_second.insert(rank);
  const ResourceSet& inventory = it.engine.module().inventory();
  it.alloc("j", {{{every_second, IdSet::range(0, 19), IdSet{0}}}, inventory.hosts(every_second)});
  it.free({"j"});
  // 2,000 jobs of a core each, and more targets than the bound allows for.
  std::vector<AllocationRequest> jobs;
  std::vector<std::string> ids;
  for (int i = 0; i < 2000; ++i) {
    ids.push_back(fmt::format("j{}", i));
    jobs.push_back({ids.back(), part(std::to_string(i), "0", fmt::format("node{}", i))});
  }
  CHECK(it.alloc(jobs).records.size() == 1);
  CHECK(it.change(World::frees(ids), jobs).records.size() == 2);
  CHECK(it.free(ids).records.size() == 1);
  std::vector<AllocationRequest> wanted;
  ids.clear();
  for (IdSet::Id core = 0; core < 20; ++core) {
    ids.push_back(fmt::format("k{}", core));
    wanted.push_back({ids.back(), part("0-16383", std::to_string(core), "node[0-16383]")});
  }
  for (const AllocationRequest& one : wanted) it.alloc({one});
  const char* const too_many =
      "the request names too many cores, gpus and targets; name fewer, or fewer allocations";
  CHECK(it.refusal(EMSGSIZE, [&] { it.free(ids); }) == too_many);
  CHECK(it.refusal(EMSGSIZE, [&] { it.change(World::frees(ids), {jobs[0]}); }) == too_many);
  for (const std::string& id : ids) it.free({id});
  it.alloc("all", part("0-16383", "0-19", "node[0-16383]", "0"));
  it.free({"all"});
  CHECK(it.refusal(EMSGSIZE, [&] { it.alloc(wanted); }) == too_many);
}

TEST_CASE("200 targets with different halves of their cores are one allocation") {
  World it("node[0-199]", {}, {}, 63);
  std::vector<rset::ResourceGroup> groups;
  for (IdSet::Id rank = 0; rank < 200; ++rank) {
    IdSet half;
    for (IdSet::Id core = 0; core < 64; core += 2) half.insert(core + ((rank >> (core / 2 % 8)) & 1U));
    groups.push_back({{rank}, half, {}});
  }
  it.alloc("j", {std::move(groups), text::Hostlist::parse("node[0-199]")});
  it.free({"j"});
}

}  // namespace
}  // namespace resourced::engine::ledger_tests

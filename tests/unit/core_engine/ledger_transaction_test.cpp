// Requests that free and allocate in one step, and requests that may have been sent before.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ledger_world.hpp"

namespace resourced::engine::ledger_tests {
namespace {

TEST_CASE("a job is replaced in one step: its resources are freed first, for the same id or another one") {
  World it("node[0-3]");
  it.alloc("j1", part("0-3", "0-3", "node[0-3]", "0"));
  const Effects replaced = it.change({{"j1"}}, {{"j1", part("1-2", "1-3", "node[1-2]", "0")}});
  REQUIRE(replaced.records.size() == 2);
  CHECK(std::get<module::FreeEvent>(replaced.records[0].event.body).ids == std::vector<std::string>{"j1"});
  CHECK(std::holds_alternative<module::AllocEvent>(replaced.records[1].event.body));
  CHECK(it.text() == "j1:1-2/1-3;");
  it.change({{"j1", {}, IdSet{2}}}, {{"j2", part("0,2", "0-3", "node[0,2]")}});
  CHECK(it.text() == "j1:1/1-3; j2:0,2/0-3;");
  CHECK(it.restarted("node[0-3]").text() == it.text());
  // A part that was all of it ends the allocation, so its id is free again.
  it.change({{"j1", {}, IdSet{1}}}, {{"j1", part("3", "0", "node3")}});
  CHECK(it.text() == "j1:3/0; j2:0,2/0-3;");
}

TEST_CASE("a request that frees and makes is done as a whole, or not at all") {
  World it("node[0-3]");
  it.alloc("j1", part("0", "0-1", "node0"));
  it.alloc("j2", part("1", "0", "node1"));
  const AllocationRequest wanted{"j3", part("0-1", "0", "node[0-1]")};
  CHECK(it.refusal(EBUSY, [&] { it.change({{"j1"}}, {wanted}); }) == "node1 core0 is held by allocation j2");
  CHECK(it.refusal(EBUSY, [&] {
    it.change({{"j2"}, {"j1"}}, {wanted, {"j4", part("1", "0-1", "node1")}});
  }) == "node1 core0 is held by allocation j3");
  CHECK(it.refusal(ENOENT, [&] {
    it.change({{"j1"}, {"j2"}, {"j9"}}, {wanted});
  }) == "unknown allocation: j9");
  CHECK(it.refusal(EINVAL, [&] {
    it.change({{"j1"}, {"j1", {}, IdSet{0}}}, {wanted});
  }) == "allocation j1 is named twice");
  CHECK(it.refusal(EINVAL, [&] {
    it.change({{"j1", {}, IdSet{2}}}, {});
  }) == "rank 2 is not in allocation j1");
  // A part does not end the allocation, so its id stays taken.
  it.alloc("j5", part("2-3", "0", "node[2-3]"));
  CHECK(it.refusal(EEXIST, [&] {
    it.change({{"j5", {}, IdSet{2}}}, {{"j5", part("2", "0", "node2")}});
  }) == "allocation j5 exists already");
  CHECK(it.change({{"j1"}, {"j2"}}, {wanted}).records.size() == 2);
  CHECK(it.text() == "j3:0-1/0; j5:2-3/0;");
}

TEST_CASE("what is freed is one event for whole allocations of a partition, and one for each part") {
  World it("node[0-4]", {{"day", IdSet::parse("0-1"), {}}, {"night", IdSet::parse("2-3"), {}}});
  it.step(Acquire{1, "day"});
  it.step(Acquire{2, "night"});
  for (const char* id : {"1", "2", "3"}) {
    const std::string core(1, static_cast<char>(*id - 1));
    it.alloc(id, part("0-1", core, "node[0-1]"), {1});
    it.alloc(id, part("2-3", core, "node[2-3]"), {2});
  }
  const Effects freed =
      it.change({{"1", "day"}, {"2", "day"}, {"1", "night"}, {"2", "night", IdSet{2}}, {"3", "night"}}, {},
                false, {1, 2});
  std::string text;
  for (const Record& record : freed.records) {
    const auto& event = std::get<module::FreeEvent>(record.event.body);
    text += fmt::format("{}{} {} {}; ", *event.partition, event.partial ? " part" : "",
                        fmt::join(event.ids, ","), record.hosts.encode());
  }
  CHECK(text == "day 1,2 node[0-1]; night 1 node[2-3]; night part 2 node2; night 3 node[2-3]; ");
  CHECK(it.text() == "day/3:0-1/2; night/2:3/1;");
}

TEST_CASE("a repeated alloc that was made counts as made, one that differs does not") {
  World it("node[0-3]");
  const AllocationRequest wanted{"j1", part("0-1", "0", "node[0-1]"), wall_time(30), "note"};
  it.alloc({wanted});
  CHECK(it.refusal(EEXIST, [&] { it.change({}, {wanted}); }) == "allocation j1 exists already");
  CHECK(it.change({}, {wanted}, true).records.empty());
  // The rest of the request is done.
  const AllocationRequest other{"j2", part("2", "0", "node2")};
  CHECK(it.change({}, {wanted, other}, true).records.size() == 1);
  CHECK(it.change({}, {wanted, other}, true).records.empty());
  CHECK(it.text() == "j1:0-1/0; j2:2/0;");
  AllocationRequest different = wanted;
  SUBCASE("another R") { different.resources = part("0", "0", "node0"); }
  SUBCASE("another expiration") { different.expiration = wall_time(31); }
  SUBCASE("no expiration") { different.expiration = WallTime{}; }
  SUBCASE("another note") { different.note = "x"; }
  CHECK(it.refusal(EEXIST, [&] { it.change({}, {different}, true); }) == "allocation j1 exists already");
  for (const auto& both : {std::vector{wanted, different}, std::vector{different, wanted}})
    CHECK(it.refusal(EEXIST, [&] { it.change({}, both, true); }) == "allocation j1 is named twice");
}

TEST_CASE("a repeated alloc counts as made by what its R has, in whatever form") {
  World it("node[0-3]");
  it.alloc("j1", part("0-1", "0-1", "node[0-1]"));
  std::string entries;
  SUBCASE("an entry for each rank") {
    entries = R"({"rank":"0","children":{"core":"0-1"}},{"rank":"1","children":{"core":"0,1"}})";
  }
  SUBCASE("the later rank first") {
    entries = R"({"rank":"1","children":{"core":"0-1"}},{"rank":"0","children":{"core":"0-1"}})";
  }
  SUBCASE("an entry for each core") {
    entries = R"({"rank":"0-1","children":{"core":"1"}},{"rank":"0-1","children":{"core":"0"}})";
  }
  const auto repeat = [&](const std::string& r_lite) {
    const std::string text =
        R"({"version":1,"execution":{"nodelist":["node0","node1"],"R_lite":[)" + r_lite + "]}}";
    return it.change({}, {{"j1", ResourceSet::from_json(nlohmann::json::parse(text))}}, true).records.size();
  };
  CHECK(repeat(entries) == 0);
  CHECK(it.text() == "j1:0-1/0-1;");
  const std::string less = R"({"rank":"0","children":{"core":"0-1"}},{"rank":"1","children":{"core":"0"}})";
  CHECK(it.refusal(EEXIST, [&] { repeat(less); }) == "allocation j1 exists already");
}

TEST_CASE("a repeated alloc is judged after the sender's hold, and before the states of its targets") {
  World it("node[0-3]", {{"day", IdSet::parse("0-1"), {}}, {"night", IdSet::parse("2-3"), {}}});
  it.step(Acquire{1, "day"});
  it.step(Acquire{2, "night"});
  const AllocationRequest wanted{"j1", part("0", "0", "node0")};
  it.alloc({wanted});
  it.step(module::DrainCommand{{}, "node0", {}});
  CHECK(it.change({}, {wanted}, true).records.empty());
  CHECK(it.refusal(EPERM, [&] { it.change({}, {wanted}, true, {2}); }) == "rank 0 (node0) is not acquired");
}

TEST_CASE("a repeated alloc that was made counts as made, also where a target has left meanwhile") {
  World it("node[0-3]", {{"day", IdSet::parse("0-1"), {}}});
  it.step(Acquire{1, "day"});
  const AllocationRequest wanted{"j1", part("0-1", "0", "node[0-1]")};
  it.alloc({wanted});
  std::string gone;
  SUBCASE("one of two") { gone = "1"; }
  SUBCASE("both") { gone = "0-1"; }
  it.step(module::ShrinkCommand{gone});
  const std::string before = it.text();
  CHECK(it.change({}, {wanted}, true).records.empty());
  CHECK(it.text() == before);
  // One that was not made is refused.
  const AllocationRequest other{"j2", part("0-1", "1", "node[0-1]")};
  CHECK(it.refusal(EINVAL, [&] { it.change({}, {other}, true); }) ==
        fmt::format("rank {} is not in the inventory", gone.front()));
}

TEST_CASE("a repeated free takes an id or rank that is gone as freed") {
  World it("node[0-3]");
  it.alloc("j1", part("0-2", "0", "node[0-2]"));
  it.alloc("j2", part("3", "0", "node3"));
  it.free({"j1"}, IdSet{0});
  CHECK(it.change({{"j1", {}, IdSet{0}}}, {}, true).records.empty());
  CHECK(it.change({{"j1", {}, IdSet::parse("0-1")}, {"j9"}}, {}, true).records.size() == 1);
  CHECK(it.text() == "j1:2/0; j2:3/0;");
  CHECK(it.change({{"j1"}, {"j2"}}, {}, true).records.size() == 1);
  CHECK(it.change({{"j1"}, {"j2", {}, IdSet{3}}}, {}, true).records.empty());
  CHECK(it.refusal(EPERM, [&] { it.change({{"j1"}}, {}, true, {}); }) == "no resources are acquired");
}

TEST_CASE("a repeated request that frees and makes an id has done both if the allocation is equal") {
  World it("node[0-3]");
  it.alloc("j1", part("0", "0", "node0"));
  const std::vector<FreeRequest> frees{{"j1"}, {"j2"}};
  const std::vector<AllocationRequest> wanted{{"j1", part("0-1", "0", "node[0-1]")}};
  it.alloc("j2", part("1", "0", "node1"));
  CHECK(it.change(frees, wanted, true).records.size() == 2);
  CHECK(it.text() == "j1:0-1/0;");
  CHECK(it.change(frees, wanted, true).records.empty());
  CHECK(it.text() == "j1:0-1/0;");
  // Without the flag it is another request, which replaces the allocation by an equal one.
  CHECK(it.change({{"j1"}}, wanted).records.size() == 2);
  CHECK(it.text() == "j1:0-1/0;");
}

TEST_CASE("a repeated free of another scheduler's allocation is refused as the first one") {
  World it("node[0-3]", {{"day", IdSet::parse("0-1"), {}}, {"night", IdSet::parse("2-3"), {}}});
  it.step(Acquire{1, "day"});
  it.step(Acquire{2, "night"});
  it.alloc("j1", part("0", "0", "node0"));
  CHECK(it.change({{"j1", "day", IdSet{3}}, {"j2"}}, {}, true, {2}).records.empty());
  CHECK(it.refusal(EPERM, [&] {
    it.change({{"j1", "day", IdSet{0}}}, {}, true, {2});
  }) == "allocation j1 of partition day: rank 0 (node0) is not acquired");
  // An allocation that is gone is no matter of the other scheduler either.
  for (const std::string id : {"j1", "j2"})
    CHECK(it.refusal(EPERM,
                     [&] {
                       it.change({{id, "day"}}, {}, true, {2});
                     }) == "allocation " + id +
                               " of partition day is of another scheduler: free the targets that you have by "
                               "their ranks");
  CHECK(it.change({{"j2", "night"}}, {}, true, {2}).records.empty());
}

}  // namespace
}  // namespace resourced::engine::ledger_tests

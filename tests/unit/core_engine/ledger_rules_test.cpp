// The rules of the ledger that a site sets: how large it may become, and whether what has expired is freed.
#include <doctest/doctest.h>

#include "ledger_world.hpp"

namespace resourced::engine::ledger_tests {
namespace {

using module::UpdateRequest;

/// The size of these allocations as the documentation of `max-bytes` has it.
std::size_t size_of(const module::Ledger& ledger, std::optional<std::string> partition = {}) {
  std::size_t bytes = 0;
  for (const auto& [name, allocation] : ledger.all()) {
    if (partition && name.partition != *partition) continue;
    bytes += allocation->resources.encode().size() + name.id.size() + allocation->note.value_or("").size();
  }
  return bytes;
}

Effects change_terms(World& world, UpdateRequest wanted) {
  module::LedgerCommand command;
  command.update = std::move(wanted);
  return world.step(ChangeLedger{{1}, std::move(command)});
}

/// The rules that allow these bytes.
KeepLedger at_most(std::size_t bytes) { return {{.max_bytes = bytes}}; }

/// Returns the ids that a step frees, of each event.
std::vector<std::vector<std::string>> freed(const Effects& effects) {
  std::vector<std::vector<std::string>> ids;
  for (const Record& record : effects.records)
    ids.push_back(std::get<module::FreeEvent>(record.event.body).ids);
  return ids;
}

constexpr KeepLedger free_expired{{.free_expired = true}};

}  // namespace

TEST_SUITE_BEGIN("ledger rules");

TEST_CASE("the ledger counts the bytes of its allocations through all changes") {
  World it("node[0-3]");
  const auto& ledger = it.engine.module().ledger();
  CHECK(ledger.bytes() == 0);
  it.alloc({{"j1", part("0-2", "0", "node[0-2]"), std::nullopt, "a note"}, {"j2", part("0", "1", "node0")}});
  CHECK(ledger.bytes() == size_of(ledger));
  it.free({"j1"}, IdSet{1});
  CHECK(ledger.bytes() == size_of(ledger));
  change_terms(it, {.id = "j2", .note = "longer than nothing", .add = part("3", "2", "node3")});
  CHECK(ledger.bytes() == size_of(ledger));
  CHECK(it.restarted("node[0-3]").engine.module().ledger().bytes() == size_of(ledger));
  CHECK(module::Ledger(ledger).bytes() == size_of(ledger));
  it.free({"j1", "j2"});
  CHECK(ledger.bytes() == 0);
  CHECK(ledger.bytes_of("") == 0);
}

TEST_CASE("what would make the ledger too large is refused, and what makes it smaller never") {
  World it("node[0-3]");
  it.alloc("j1", part("0", "0", "node0"));
  const auto& ledger = it.engine.module().ledger();
  const std::size_t one = ledger.bytes();
  it.step(at_most(2 * one));
  it.alloc("j2", part("0", "1", "node0"));
  const std::string text = it.refusal(EDQUOT, [&] { it.alloc("j3", part("0", "2", "node0")); });
  CHECK(text == "the ledger would have " + std::to_string(3 * one) +
                    " bytes of allocations, more than allocations.max-bytes, which is " +
                    std::to_string(2 * one) + ": free some, or raise that setting");
  CHECK(it.refusal(EDQUOT, [&] { change_terms(it, {.id = "j1", .note = "n"}); }) != "done");
  CHECK(it.refusal(EDQUOT, [&] { change_terms(it, {.id = "j1", .add = part("1", "0", "node1")}); }) !=
        "done");
  // Frees of the same request come first.
  it.change({{"j1"}}, {{"j3", part("0", "0", "node0")}});
  CHECK(ledger.bytes() == 2 * one);

  // A ledger that is too large already, as the setting was higher: it may only become smaller.
  it.step(at_most(one / 2));
  CHECK(it.refusal(EDQUOT, [&] { it.change({{"j3"}}, {{"job3", part("0", "0", "node0")}}); }) != "done");
  it.change({{"j3"}}, {{"j", part("0", "0", "node0")}});
  it.free({"j"});
  CHECK(it.text() == "j2:0/1;");
}

TEST_CASE("targets that the same request frees make room in the ledger") {
  World it("node[0-199]");
  // Every other node has a long text.
  std::string ranks = "0";
  std::string hosts = "node0";
  for (int rank = 2; rank < 200; rank += 2) {
    ranks += "," + std::to_string(rank);
    hosts += ",node" + std::to_string(rank);
  }
  const auto others = part(ranks, "0", hosts);
  it.alloc("j1", others);
  it.step(at_most(it.engine.module().ledger().bytes() + 20));
  const auto small = part("1", "0", "node1");
  CHECK(it.refusal(EDQUOT, [&] { it.alloc("j2", small); }) != "done");
  it.change({{"j1", std::nullopt, others.ranks() - IdSet{0}}}, {{"j2", small}});
  CHECK(it.text() == "j1:0/0; j2:1/0;");
  CHECK(it.engine.module().ledger().bytes() == size_of(it.engine.module().ledger()));
}

TEST_CASE("where there are partitions, one of them may have half of the ledger") {
  World it("node[0-3]", {{"day", IdSet{0, 1}, {}}, {"night", IdSet{2, 3}, {}}});
  it.step(Acquire{1, "day"});
  it.step(Acquire{2, "night"});
  it.alloc("j1", part("0", "0", "node0"));
  const auto& ledger = it.engine.module().ledger();
  const std::size_t one = ledger.bytes();
  CHECK(ledger.bytes_of("day") == one);
  it.step(at_most(4 * one + 1));
  it.alloc("j2", part("0", "1", "node0"));
  const std::string text = it.refusal(EDQUOT, [&] { it.alloc("j3", part("0", "2", "node0")); });
  CHECK(text == "partition \"day\" would have " + std::to_string(3 * one) +
                    " bytes of allocations, more than half of allocations.max-bytes, which is " +
                    std::to_string(2 * one) + ": free some, or raise that setting");
  it.alloc("j1", part("2", "0", "node2"), {2});
  it.alloc("j2", part("2", "1", "node2"), {2});
  CHECK(ledger.bytes() == 4 * one);
  CHECK(ledger.bytes_of("night") == size_of(ledger, "night"));
}

TEST_CASE("an expired allocation stays unless the site has it freed") {
  World it("node[0-3]");
  it.alloc({{"j1", part("0", "0", "node0"), wall_time(200)}});
  CHECK(it.step(Tick{}, 300).records.empty());
  CHECK(it.text() == "j1:0/0;");
}

TEST_CASE("an allocation is freed when it expires, by nobody, and its scheduler is told") {
  World it("node[0-3]");
  it.step(Release{1});
  it.step(Acquire{1, {}, true, {.ledger = true}});
  it.step(free_expired);
  it.alloc({{"j1", part("0", "0", "node0"), wall_time(200)}, {"j2", part("1", "0", "node1")}});
  it.step(Tick{}, 100);
  CHECK(it.engine.next_due(wall_time(100)) == wall_time(200));
  CHECK(it.step(Tick{}, 199).records.empty());
  const Effects effects = it.step(Tick{}, 200);
  CHECK(freed(effects) == std::vector<std::vector<std::string>>{{"j1"}});
  CHECK_FALSE(effects.records[0].event.by);
  CHECK(effects.records[0].hosts.encode() == "node0");
  CHECK(effects.updates.back().delta.allocations.at({"", "j1"}).now == nullptr);
  CHECK(it.text() == "j2:1/0;");
  CHECK_FALSE(it.engine.next_due(wall_time(200)));
}

TEST_CASE("nothing that has expired is freed within a minute of a start") {
  World before("node[0-3]", {{"day", IdSet{0, 1}, {}}, {"night", IdSet{2, 3}, {}}});
  before.step(Acquire{1, "day"});
  before.step(Acquire{2, "night"});
  before.alloc({{"j1", part("0", "0", "node0"), wall_time(15)}}, {1});
  before.alloc({{"j1", part("2", "0", "node2"), wall_time(16)}}, {2});
  // This one starts at 20.
  World it = before.restarted("node[0-3]");
  it.step(free_expired);
  CHECK(it.engine.next_deadline() == steady_time(80));
  CHECK(it.step(Tick{}, 79.9).records.empty());
  // One event for each partition.
  CHECK(freed(it.step(Tick{}, 80)) == std::vector<std::vector<std::string>>{{"j1"}, {"j1"}});
  CHECK(it.text().empty());
  CHECK_FALSE(it.engine.next_deadline());
}

TEST_CASE("nothing that has expired is freed within a minute of a jump of the clock") {
  World it("node[0-3]");
  it.step(free_expired);
  it.alloc({{"j1", part("0", "0", "node0"), wall_time(5000)}});
  it.step(Tick{}, 100);
  const auto tick = [&](double wall, double steady) {
    return freed(it.engine.step(Tick{}, {wall_time(wall), steady_time(steady)})).size();
  };
  CHECK(tick(5100, 200) == 0);
  CHECK(it.engine.next_deadline() == steady_time(260));
  // It is corrected within the minute.
  CHECK(tick(210, 210) == 0);
  CHECK(tick(280, 280) == 0);
  CHECK(it.text() == "j1:0/0;");
  // A clock that is corrected slowly has not jumped.
  CHECK(tick(4998, 5000) == 0);
  CHECK(tick(5000, 5002) == 1);
}

TEST_CASE("many that expire at once are freed a thousand at a time, those first that expired first") {
  constexpr IdSet::Id last_core = 1499;
  World it("node0", {}, {}, last_core);
  std::vector<AllocationRequest> wanted;
  for (IdSet::Id core = 0; core <= last_core; ++core)
    wanted.push_back(
        {std::to_string(core), part("0", std::to_string(core), "node0"), wall_time(3000 - core)});
  for (AllocationRequest& one : wanted) it.alloc({std::move(one)});
  it.step(free_expired);
  it.step(Tick{}, 100);
  const auto first = freed(it.step(Tick{}, 3000));
  REQUIRE(first.size() == 1);
  REQUIRE(first[0].size() == 1000);
  CHECK(first[0].front() == "1499");
  CHECK(first[0].back() == "500");
  CHECK(*it.engine.next_due(wall_time(3000)) <= wall_time(3000));
  const auto second = freed(it.step(Tick{}, 3000));
  REQUIRE(second.size() == 1);
  CHECK(second[0].size() == 500);
  CHECK(it.text().empty());
}

TEST_SUITE_END();

}  // namespace resourced::engine::ledger_tests

// The ledger in the store: the allocations that a start finds, their records in the log, and readers that do
// not want those.
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/engine/engine.hpp"
#include "daemon/log/import.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_writer.hpp"
#include "proto/event_json.hpp"
#include "store_samples.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon::log {

using text::IdSet;

namespace {

Record ledger_record(Sequence sequence, const std::string& name, const std::string& host) {
  Record record;
  record.sequence = sequence;
  record.timestamp = wall_time(100 + static_cast<double>(sequence));
  record.name = name;
  record.text = fmt::format(R"({{"timestamp":{},"name":"{}"}})", to_number(record.timestamp), name);
  record.hosts = text::Hostlist::parse(host);
  record.audience = proto::audience_of(name);
  return record;
}

module::SharedAllocation allocation_of(const std::string& id, IdSet::Id rank, const std::string& host) {
  module::Allocation allocation;
  allocation.name.id = id;
  allocation.resources = rset::ResourceSet({{IdSet{rank}, IdSet{0, 1}, {}}}, text::Hostlist::parse(host));
  allocation.text = std::make_shared<const std::string>(allocation.resources.encode());
  return std::make_shared<const module::Allocation>(std::move(allocation));
}

Record free_record(Sequence sequence, const std::string& id) {
  return record_of(sequence, module::FreeEvent{{id}, IdSet{0}, text::Hostlist::parse("a")}, "a");
}

TEST_CASE("allocations are found again, with all that belongs to them") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  module::Allocation second = *allocation_of("j2", 2, "b");
  second.expiration = wall_time(77);
  second.note = "a note";
  second.name.partition = "night";
  {
    StoreWriter writer(path);
    const auto shared = std::make_shared<const module::Allocation>(second);
    writer.commit({record_of(1, definition_of("a,b,b")),
                   record_of(2, module::AllocEvent{{allocation_of("j1", 0, "a"), shared}}),
                   free_record(3, "j1"), record_of(4, module::AllocEvent{{allocation_of("j3", 0, "a")}})});
  }
  StoreWriter writer(path);
  // From the events, and from a snapshot of the state after them.
  for (const bool of_snapshot : {false, true}) {
    CAPTURE(of_snapshot);
    const module::State state = state_of(writer);
    const module::Ledger& ledger = state.ledger;
    REQUIRE(ledger.all().size() == 2);
    REQUIRE(ledger.find({"", "j3"}) != nullptr);
    CHECK(ledger.find({"", "j3"})->resources == allocation_of("j3", 0, "a")->resources);
    CHECK_FALSE(ledger.find({"", "j3"})->expiration);
    CHECK(ledger.find({"", "j3"})->name.partition.empty());
    const module::Allocation* found = ledger.find({"night", "j2"});
    REQUIRE(found != nullptr);
    CHECK(*found->text == *second.text);
    CHECK(found->resources.ranks() == IdSet{2});
    CHECK(found->expiration == wall_time(77));
    CHECK(found->note == "a note");
    CHECK(found->name.partition == "night");
    if (!of_snapshot) writer.write_past(SnapshotRow(4, state), nullptr);
  }
}

/// The sequences of the events that a reader gets.
std::string shown(StoreReader& reader, const EventFilter& filter, Sequence from, Sequence to) {
  std::string text;
  while (from <= to) {
    const HistoryPage page = reader.page(filter, from, to, 100);
    for (const LoggedEvent& event : page.events) {
      const bool is_drain = event.text.find("drain") != std::string::npos;
      text += fmt::format("{}{} ", is_drain ? "" : "+", event.sequence);
      CHECK(event.audience == (is_drain ? Audience::everyone : Audience::ledger));
    }
    REQUIRE(page.next > from);
    from = page.next;
  }
  return text;
}

TEST_CASE("a reader gets the records of the ledger only if it asks for them") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  constexpr Sequence drains[] = {1, 2, 700, 1500, 2000};
  constexpr Sequence last = 2100;
  StoreWriter writer(path);
  std::vector<Record> records;
  std::string expected;
  for (Sequence i = 1; i <= last; ++i) {
    if (std::ranges::find(drains, i) != std::end(drains)) {
      records.push_back(drain_record(i, 0, i == 1500 ? "b" : "a", "x"));
      expected += fmt::format("{} ", i);
    } else {
      records.push_back(i % 2 == 0 ? ledger_record(i, "free", "a") : ledger_record(i, "alloc", "a"));
    }
  }
  writer.commit(records);
  StoreReader reader(writer.database(), writer.hosts());
  EventFilter all;
  CHECK(shown(reader, all, 1, last) == expected);
  // A long run of them costs a few rows.
  CHECK(reader.page(all, 1, last, 100).next == last + 1);
  all.targets = targets_of("a");
  CHECK(shown(reader, all, 1, last) == "1 2 700 2000 ");
  EventFilter with_ledger;
  with_ledger.audiences.allocations = true;
  CHECK(shown(reader, with_ledger, 698, 702) == "+698 +699 700 +701 +702 ");

  // The newest events are counted without them.
  CHECK(reader.start({}, 100).first == 1);
  CHECK_FALSE(reader.start({}, 5).truncated);
  CHECK(reader.start({}, 4).first == 2);
  CHECK(reader.start({}, 3).first == 700);
  CHECK(reader.start({}, 3).truncated);
  CHECK(reader.start({}, 1).first == 2000);
  CHECK(reader.start(with_ledger, 3).first == last - 2);
}

TEST_CASE("a reader gets this project's own records only if it asks for them, and no other hidden ones") {
  const resourced::test::TempDir dir;
  StoreWriter writer(store_path(dir.path()));
  writer.commit({record_of(1, definition_of("a")), drain_record(2, 0, "a", "x"),
                 record_of(3, module::EvictEvent{IdSet{0}, text::Hostlist::parse("a")}, "a"),
                 record_of(4, module::LossEvent{IdSet{0}, text::Hostlist::parse("a")}, "a")});
  StoreReader reader(writer.database(), writer.hosts());
  const auto sequences = [&](const Audiences& audiences) {
    EventFilter filter;
    filter.audiences = audiences;
    std::vector<Sequence> found;
    for (const LoggedEvent& event : reader.page(filter, 1, 4, 100).events) found.push_back(event.sequence);
    return found;
  };
  CHECK(sequences({}) == std::vector<Sequence>{1, 2});
  CHECK(sequences({.own = true}) == std::vector<Sequence>{1, 2, 3});
  CHECK(sequences(all_audiences) == std::vector<Sequence>{1, 2, 3, 4});
}

TEST_CASE("the count goes on after a restart, and damage hides no event") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  Sequence next = 1;
  for (int opened = 0; opened < 3; ++opened) {
    StoreWriter writer(path);
    std::vector<Record> records;
    for (int i = 0; i < 20; ++i) records.push_back(ledger_record(next++, "alloc", "a"));
    records.push_back(drain_record(next++, 0, "a", "x"));
    for (int i = 0; i < 20; ++i) records.push_back(ledger_record(next++, "free", "a"));
    writer.commit(records);
  }
  const Sequence last = next - 1;
  const std::string drains = "21 62 103 ";
  {
    StoreWriter writer(path);
    StoreReader reader(writer.database(), writer.hosts());
    CHECK(shown(reader, {}, 1, last) == drains);
    CHECK(reader.start({}, 2).first == 62);
  }
  for (const Sequence damaged : {Sequence{5}, Sequence{62}, Sequence{90}, last}) {
    CAPTURE(damaged);
    Database(path).execute(
        fmt::format("UPDATE event SET ledger = ledger + 1 WHERE sequence = {}", damaged).c_str());
    StoreWriter writer(path);
    StoreReader reader(writer.database(), writer.hosts());
    try {
      const std::string text = shown(reader, {}, 1, last);
      CHECK(text == drains);
    } catch (const Error& error) {
      CHECK(error.errnum() == EBADMSG);
    }
    writer.database().execute(
        fmt::format("UPDATE event SET ledger = ledger - 1 WHERE sequence = {}", damaged).c_str());
  }
  // The last event was damaged when the store was opened: what is written then counts on.
  Database(path).execute(
      fmt::format("UPDATE event SET ledger = ledger + 5 WHERE sequence = {}", last).c_str());
  {
    StoreWriter writer(path);
    writer.commit({drain_record(next, 0, "a", "x"), ledger_record(next + 1, "alloc", "a")});
  }
  Database(path).execute(
      fmt::format("UPDATE event SET ledger = ledger - 5 WHERE sequence = {}", last).c_str());
  StoreWriter writer(path);
  StoreReader reader(writer.database(), writer.hosts());
  CHECK(shown(reader, {}, 1, next + 1) == drains + fmt::format("{} ", next));
}

TEST_CASE("an exported log has the allocations for another store") {
  engine::Engine engine;
  std::string log;
  double now = 10;
  const auto step = [&](const engine::Input& input) {
    for (const engine::Record& record : engine.step(input, {wall_time(++now), {}}).records)
      log += proto::encode_event(record.event) + "\n";
  };
  const auto inventory = std::make_shared<const rset::ResourceSet>(
      std::vector<rset::ResourceGroup>{{IdSet::range(0, 3), IdSet::range(0, 3), {}}},
      text::Hostlist::parse("a,h,h,b"));
  engine::Start start;
  start.command.inventory = inventory;
  step(start);
  step(engine::Acquire{1, {}});
  const auto part = [&](const char* ranks, const char* cores) {
    const IdSet set = IdSet::parse(ranks);
    return rset::ResourceSet({{set, IdSet::parse(cores), {}}}, inventory->hosts(set));
  };
  step(engine::ChangeLedger{
      {1}, {{}, {{"j1", part("0-3", "0"), wall_time(5), "note"}, {"j2", part("2", "1-2")}}}});
  step(engine::ChangeLedger{{1}, {{}, {{"j3", part("3", "3")}}}});
  step(engine::ChangeLedger{{1}, {{{"j3"}}}});
  step(engine::ChangeLedger{{1}, {{{"j1", std::nullopt, IdSet::parse("0-1")}}}});

  const resourced::test::TempDir dir;
  std::istringstream input(log);
  ImportOptions options;
  options.inventory = inventory;
  (void)import_events(input, "log", dir.path(), options);
  StoreWriter writer(store_path(dir.path()));
  engine::Start again;
  again.command.inventory = inventory;
  again.state = state_of(writer);
  engine::Engine other;
  (void)other.step(again, {wall_time(100), {}});
  const module::Ledger& expected = engine.module().ledger();
  const module::Ledger& imported = other.module().ledger();
  REQUIRE(imported.all().size() == 2);
  for (const auto& [id, allocation] : expected.all()) {
    CAPTURE(id);
    const module::Allocation* found = imported.find(id);
    REQUIRE(found != nullptr);
    CHECK(*found->text == *allocation->text);
    CHECK(found->expiration == allocation->expiration);
    CHECK(found->note == allocation->note);
    CHECK(found->absent.empty());
  }
  StoreReader reader(writer.database(), writer.hosts());
  CHECK(reader.page({}, 1, 6, 100).events.size() == 2);
}

TEST_CASE("an R that nests as deep as an R may is found again") {
  const resourced::test::TempDir dir;
  std::string deep;
  for (std::size_t i = 2; i < rset::ResourceSet::max_depth; ++i) deep += '[';
  deep += std::string(deep.size(), ']');
  const std::string text =
      fmt::format(R"({{"version":1,"execution":{{"R_lite":[{{"rank":"0","children":{{)"
                  R"("core":"0"}}}}],"nodelist":["a"],"starttime":0.0,"expiration":0.0}},)"
                  R"("attributes":{{"x":{}}}}})",
                  deep);
  module::Allocation allocation = *allocation_of("j1", 0, "a");
  allocation.resources = rset::ResourceSet::parse(text);
  allocation.text = std::make_shared<const std::string>(text);
  const module::AllocEvent alloc{{std::make_shared<const module::Allocation>(allocation)}};
  {
    StoreWriter writer(store_path(dir.path()));
    writer.commit({record_of(1, definition_of("a")), record_of(2, alloc)});
    const module::State state = state_of(writer);
    REQUIRE(state.ledger.find({"", "j1"}) != nullptr);
    CHECK(*state.ledger.find({"", "j1"})->text == text);
    writer.write_past(SnapshotRow(2, state), nullptr);
  }
  StoreWriter writer(store_path(dir.path()));
  CHECK(*state_of(writer).ledger.find({"", "j1"})->text == text);
}

TEST_CASE("a snapshot writes its documents again, also where the store has damaged ones") {
  const resourced::test::TempDir dir;
  StoreWriter writer(store_path(dir.path()));
  writer.commit({record_of(1, definition_of("a")), drain_record(2, 0, "a", "x")});
  const module::State state = state_of(writer);
  writer.database().execute("UPDATE document SET text = replace(text, 'core', 'cure')");
  CHECK_THROWS_AS((void)state_of(writer), Error);
  writer.write_past(SnapshotRow(2, state), nullptr);
  CHECK(state_of(writer).targets.drains.ranks() == IdSet{0});
}

}  // namespace
}  // namespace resourced::daemon::log

// Complete exports: the State follows from each prefix, an import of one is the same log, and lines that no
// daemon writes are refused.
#include "daemon/log/complete_log.hpp"

#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "daemon/log/import.hpp"
#include "daemon/log/past_reader.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_writer.hpp"
#include "imported_present.hpp"
#include "random_instance.hpp"
#include "state_difference.hpp"
#include "store_samples.hpp"
#include "temp_dir.hpp"
#include "thorough.hpp"

namespace resourced::daemon::log {

using resourced::test::state_difference;
using resourced::test::TempDir;

namespace {

std::string exported(const TempDir& dir) {
  std::string text;
  export_complete(dir.path(), [&](const std::string& lines) { text += lines; });
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream input(text);
  for (std::string line; std::getline(input, line);) lines.push_back(line);
  return lines;
}

/// Imports a log into an empty store. Returns the state there, and checks that an export is the same text.
module::State imported(const std::string& log) {
  const Present store(log);
  CHECK(exported(store.dir) == log);
  return store.state;
}

/// Drops the events of a store up to this one, as `history` does.
void drop(StoreWriter& writer, Sequence last, const module::State& after) {
  writer.write_past(SnapshotRow(last, after), nullptr);
  CHECK(writer.trim(WallTime(Seconds::max()), last, last) > 0);
}

TEST_CASE("an R in an event is read as it was written, whatever keys it has") {
  const std::string text =
      R"({"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"nodelist":["a"],)"
      R"("starttime":0.0,"expiration":0.0},"attributes":{"system":{"R":{"b": [1.0]},"added":1}},"R":{"c":"d"}})";
  const auto resources = rset::ResourceSet::parse(text);
  const module::AllocationName name{"night", "1"};
  const auto read = [](module::EventBody body) {
    engine::Record record;
    record.sequence = 1;
    record.event = {wall_time(1), std::move(body)};
    const Record row = make_record(record);
    return event_of({row.sequence, row.timestamp, row.text, false, nullptr, row.audience, row.rest},
                    [](const std::string&) -> proto::DocumentText { return nullptr; })
        .body;
  };
  const auto made = std::make_shared<const module::Allocation>(
      module::Allocation{name, resources, std::make_shared<const std::string>(resources.encode())});
  const auto alloc = std::get<module::AllocEvent>(read(module::AllocEvent{{made}}));
  CHECK(*alloc.allocations.at(0)->text == *made->text);
  module::AllocUpdateEvent update{name};
  update.added = resources;
  update.ranks = resources.ranks();
  update.nodelist = resources.nodelist();
  CHECK(std::get<module::AllocUpdateEvent>(read(update)).added.encode() == *made->text);
}

TEST_CASE("each prefix of a complete export leads to the State in memory, and an import to the same log") {
  for (unsigned seed = 1; seed <= resourced::test::thorough(100U, 20U); ++seed) {
    CAPTURE(seed);
    RandomInstance instance(seed);
    instance.run(30);
    std::vector<module::State> states(1);
    std::vector<Record> records;
    for (const engine::Record& record : instance.records()) {
      states.push_back(states.back());
      (void)module::apply(states.back(), record.event);
      records.push_back(make_record(record));
    }
    const TempDir dir;
    {
      StoreWriter writer(store_path(dir.path()));
      writer.commit(records);
    }
    std::string whole = exported(dir);
    CHECK(state_difference(imported(whole), instance.state()) == "");
    const Sequence dropped = 1 + seed % (records.size() - 1);
    {
      StoreWriter writer(store_path(dir.path()));
      drop(writer, dropped, states[dropped]);
    }
    const std::string trimmed = exported(dir);
    CHECK(state_difference(imported(trimmed), instance.state()) == "");

    for (const auto& [log, first] : {std::pair(whole, Sequence{0}), std::pair(trimmed, dropped)}) {
      std::vector<std::string> lines = lines_of(log);
      CompleteReader reader(lines.front());
      Sequence at = first;
      for (std::size_t i = 1; i < lines.size(); ++i) {
        if (reader.read(lines[i])) ++at;
        if (at > first || reader.base().state) CHECK(state_difference(reader.state(), states[at]) == "");
      }
      CHECK(at == records.size());
      CHECK_NOTHROW(reader.end());
    }
  }
}

/// The export of a store with a definition and two drains, of which the first `dropped` events, 0 or 2, are
/// dropped.
std::vector<std::string> sample(Sequence dropped) {
  const TempDir dir;
  {
    const auto drain = [](Sequence sequence, text::IdSet::Id rank) {
      const std::string host = fmt::format("n{}", rank);
      return record_of(sequence, module::DrainEvent{{"fan"}, {rank}, text::Hostlist::parse(host)}, host);
    };
    StoreWriter writer(store_path(dir.path()));
    writer.commit({record_of(1, definition_of("n[0-3]")), drain(2, 1)});
    const module::State after = state_of(writer);
    writer.commit({drain(3, 2)});
    if (dropped > 0) drop(writer, dropped, after);
  }
  return lines_of(exported(dir));
}

TEST_CASE("a document stands once, before the first line that names it") {
  const std::vector<std::string> whole = sample(0);
  REQUIRE(whole.size() == 5);
  CHECK(whole[0] == R"({"resourced":{"format":1,"after":0,"timestamp":0.0,"last":3}})");
  CHECK(whole[1].starts_with(R"({"resourced":{"document":"{)"));
  CHECK(whole[2].find(R"(,"resourced":{"R":")") != std::string::npos);
  CHECK(whole[3].ends_with(R"("reason":"fan","overwrite":0}})"));
}

TEST_CASE("the scheduling of an allocation keeps its text, in an event and in a snapshot") {
  const std::string scheduling = R"({"zeta":1.50,"alpha":{"nested":[1e2]}})";
  const auto allocate = [&](Sequence sequence, const std::string& id, text::IdSet::Id rank) {
    module::Allocation allocation;
    allocation.name.id = id;
    allocation.resources =
        rset::ResourceSet({{{rank}, {0}, {}}}, text::Hostlist::parse(fmt::format("n{}", rank)));
    allocation.resources.set_scheduling(scheduling);
    allocation.text = std::make_shared<const std::string>(allocation.resources.encode());
    return record_of(sequence, module::AllocEvent{{std::make_shared<const module::Allocation>(allocation)}});
  };
  const TempDir dir;
  {
    StoreWriter writer(store_path(dir.path()));
    writer.commit({record_of(1, definition_of("n[0-3]")), allocate(2, "first", 1)});
    drop(writer, 2, state_of(writer));
    writer.commit({allocate(3, "second", 2)});
  }
  const std::string log = exported(dir);
  const std::vector<std::string> lines = lines_of(log);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].find("\"after\":2,") != std::string::npos);
  CHECK(lines[3].find(scheduling) != std::string::npos);
  const module::State state = imported(log);
  for (const char* id : {"first", "second"}) {
    REQUIRE(state.ledger.find({"", id}) != nullptr);
    CHECK(*state.ledger.find({"", id})->resources.scheduling() == scheduling);
  }
}

TEST_CASE("a complete log may have longer lines than the log of another program") {
  std::string log;
  for (const std::string& line : sample(0)) log += line + '\n';
  ImportOptions options;
  options.max_line = 100;
  CHECK(Present(log, options).imported.events == 3);
}

TEST_CASE(
    "a line of a complete log that no daemon writes is refused with its number, and nothing is stored") {
  struct Row {
    Sequence dropped;
    std::size_t line;
    /// Replaces the first text by the second one in the line; the whole line if the first one is empty.
    std::string before;
    std::string after;
    std::string error;
  };
  const std::string document = R"({"resourced":{"document":"x"}})";
  const std::vector<Row> rows{
      {0, 1, "\"format\":1", "\"format\":2", "log:1: format 2 is not 1, which this resourced reads"},
      {0, 1, "\"after\":0", "\"after\":9", "log:1: its events end before they begin"},
      {0, 1, "\"last\":3", "\"last\":-1", "log:1: its events end before they begin"},
      {0, 1, "\"last\":3", "\"last\":3,\"more\":1", "log:1: /resourced/more: is unknown"},
      {0, 1, ",\"last\":3", "", "log:1: is not the first line of a complete log"},
      {0, 1, "\"last\":3", "\"last\":4", "log:6: ends with event 3, not 4"},
      {0, 2, "", "{", "log:2: is not a JSON object"},
      {0, 2, "", "[]", "log:2: is not a JSON object"},
      {0, 2, "", R"({"resourced":{"document":5}})",
       "log:2: resourced: has neither a document nor a snapshot"},
      {0, 2, "", R"({"resourced":{"document":"x","more":1}})", "log:2: resourced: has neither"},
      {0, 2, "", R"({"resourced":{"document":"x"},"more":1})", "log:2: resourced: has neither"},
      {0, 2, "", R"({"resourced":{"snapshot":{}}})", "log:2: a snapshot is not at the beginning"},
      {0, 2, "", document, "log:3: document "},
      {0, 3, "\"resourced\":{", "\"resourced\":{\"more\":1,", "log:3: /resourced/more: is unknown"},
      {0, 3, "\"context\":{", "\"context\":{\"more\":1,", "log:3: /context/more: is unknown"},
      {0, 4, "\"name\":\"drain\"", "\"name\":\"brain\"", "log:4: there is no event brain"},
      {0, 4, "\"name\":\"drain\"", "\"name\":\"undrain\"",
       "log:4: it does not follow from the events before it"},
      {0, 4, "\"context\":", "\"more\":1,\"context\":", "log:4: /more: is unknown"},
      {0, 4, "}}", "},\"resourced\":{\"loaded\":true}}", "log:4: /resourced: is unknown"},
      {0, 4, "\"idset\":\"1\"", "\"idset\":1", "log:4: context.idset: must be a string"},
      {0, 5, "\"timestamp\":103", "\"timestamp\":101",
       "log:5: timestamp: is before that of the event before"},
      {2, 2, "", document, "log:3: document "},
      {2, 3, "\"snapshot\":{", "\"snapshot\":{\"more\":1,", "log:3: /more: is unknown"},
      {2, 3, "\"defined\":true", "\"defined\":5", "log:3: defined must be true or false"},
      {2, 3, "", document, "log:4: the snapshot before the events is missing"},
      {2, 4, "", R"({"resourced":{"snapshot":{}}})", "log:4: a snapshot is not at the beginning"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> lines = sample(row.dropped);
    std::string& line = lines.at(row.line - 1);
    CAPTURE(line);
    CAPTURE(row.after);
    const std::size_t at = line.find(row.before);
    REQUIRE(at != std::string::npos);
    line.replace(at, row.before.empty() ? line.size() : row.before.size(), row.after);
    const TempDir dir;
    std::istringstream input(fmt::format("{}\n", fmt::join(lines, "\n")));
    CHECK_THROWS_WITH_AS(import_events(input, "log", dir.path(), {}), doctest::Contains(row.error.c_str()),
                         Error);
    CHECK(StoreWriter(store_path(dir.path())).last_sequence() == 0);
  }
  CHECK_THROWS_WITH_AS(Present(sample(2)[0]), "log:2: ends with event 2, not 3", Error);
}

TEST_CASE("a store whose first events have no State is exported from the first State on") {
  const Present foreign(restart);
  const std::string log = exported(foreign.dir);
  CHECK(log.starts_with(R"({"resourced":{"format":1,"after":2,"timestamp":1.0,"last":2}})"));
  CHECK(state_difference(imported(log), foreign.state) == "");
}

TEST_CASE("what is damaged or not there is not exported") {
  const TempDir dir;
  CHECK_THROWS_WITH_AS((void)exported(dir), doctest::Contains("there is no store"), Error);
  StoreWriter writer(store_path(dir.path()));
  writer.commit({record_of(1, definition_of("n[0-3]")), drain_record(2, 1, "n1", "fan")});
  writer.database().execute("UPDATE event SET text = replace(text, 'drain', 'brain') WHERE sequence = 2");
  CHECK_THROWS_WITH_AS((void)exported(dir), doctest::Contains("event 2 of the log is damaged"), Error);
}

}  // namespace
}  // namespace resourced::daemon::log

// A store whose log is damaged after its last snapshot refuses the start, names the way out, and gives up
// what came after the damage when that is wanted.
#include "daemon/log/store_recovery.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "daemon/log/store.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_writer.hpp"
#include "daemon/log/usage_search.hpp"
#include "store_samples.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon::log {
namespace {

constexpr Sequence damaged = 600;

/// A store with 603 events, of which 600 is damaged: 599 and 602 allocate, 603 frees, all others drain.
void write_store(const std::string& directory) {
  const auto allocates = [](Sequence sequence, const std::string& id) {
    module::Allocation allocation;
    allocation.name.id = id;
    allocation.resources =
        rset::ResourceSet({{{0}, {id == "j1" ? 0U : 1U}, {}}}, text::Hostlist::parse("n0"));
    allocation.text = std::make_shared<const std::string>(allocation.resources.encode());
    return record_of(sequence, module::AllocEvent{{std::make_shared<const module::Allocation>(allocation)}},
                     "n0");
  };
  StoreWriter writer(store_path(directory));
  std::vector<Record> records{record_of(1, definition_of("n[0-9]"))};
  for (Sequence i = 2; i <= 601; ++i) {
    const auto rank = static_cast<text::IdSet::Id>(i % 10);
    records.push_back(i == 599 ? allocates(i, "j1") : drain_record(i, rank, fmt::format("n{}", rank), "why"));
  }
  records.push_back(allocates(602, "j2"));
  records.push_back(record_of(603, module::FreeEvent{{"j1"}, {0}, text::Hostlist::parse("n0")}, "n0"));
  writer.commit(records);
  writer.database().execute(
      fmt::format("UPDATE event SET text = replace(text, 'drain', 'brain') WHERE sequence = {}", damaged)
          .c_str());
}

std::string refusal(const std::string& directory) {
  try {
    (void)Store(directory).load();
    return "";
  } catch (const Error& error) {
    CHECK(error.errnum() == EBADMSG);
    return error.what();
  }
}

TEST_CASE("damage after the last snapshot refuses the start, with the event and what can be kept") {
  const resourced::test::TempDir dir;
  write_store(dir.path());
  const std::string why = refusal(dir.path());
  CAPTURE(why);
  CHECK(why.find("resourced.sqlite: event 600 of the log is damaged") != std::string::npos);
  CHECK(why.find("give up what came after event 599 with --recover-to 599") != std::string::npos);
  try {
    (void)peek_store(dir.path());
    FAIL("it was read");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == why);
  }
}

TEST_CASE("a recovery keeps the events before the damage, lists the others, and leaves the file as it was") {
  const resourced::test::TempDir dir;
  write_store(dir.path());
  const std::string before = resourced::test::read_file(store_path(dir.path()));
  const Recovered recovered = recover_store(dir.path(), damaged - 1);
  REQUIRE(recovered.lost.size() == 4);
  CHECK(recovered.lost[0] == "event 600, which cannot be read");
  CHECK(recovered.lost[1].starts_with("event 601: {\"timestamp\":701"));
  CHECK(recovered.lost[2] == "event 602: the allocation of j2");
  CHECK(recovered.lost[3] == "event 603: the free of j1");
  CHECK(resourced::test::read_file(recovered.kept) == before);
  StoreWriter writer(store_path(dir.path()));
  CHECK(writer.last_sequence() == damaged - 1);
  const module::State state = state_of(writer);
  CHECK(state.targets.drains.ranks() == text::IdSet::range(0, 9));
  CHECK(state.ledger.find({"", "j1"}) != nullptr);
  CHECK(state.ledger.find({"", "j2"}) == nullptr);
  // What follows is found by its hosts, also where a block had events that were given up.
  std::vector<Record> more;
  for (Sequence i = damaged; i <= damaged + 300; ++i)
    more.push_back(drain_record(i, 0, i == damaged + 3 ? "later" : "n0", "why"));
  writer.commit(more);
  StoreReader reader(writer.database(), writer.hosts());
  EventFilter filter;
  filter.targets = targets_of("later");
  const HistoryPage page = reader.page(filter, 1, damaged + 300, 10);
  REQUIRE(page.events.size() == 1);
  CHECK(page.events[0].sequence == damaged + 3);
}

TEST_CASE("a recovery that cannot be made changes nothing, and says why") {
  const resourced::test::TempDir dir;
  CHECK_THROWS_WITH_AS((void)recover_store(dir.path(), 1), doctest::Contains("there is no store"), Error);
  write_store(dir.path());
  const std::string before = resourced::test::read_file(store_path(dir.path()));
  const auto refuses = [&](Sequence last, const char* why) {
    CHECK_THROWS_WITH_AS((void)recover_store(dir.path(), last), doctest::Contains(why), Error);
    CHECK(resourced::test::read_file(store_path(dir.path())) == before);
    CHECK_FALSE(std::filesystem::exists(store_path(dir.path()) + ".damaged"));
    CHECK_FALSE(std::filesystem::exists(store_path(dir.path()) + ".new"));
  };
  refuses(603, "it has events up to 603, so none after 603 to give up");
  refuses(9999, "it has events up to 603");
  refuses(0, "it has no state after event 0");
  refuses(601, "event 600 of the log is damaged");
  {
    const Store running(dir.path());
    CHECK_THROWS_WITH_AS((void)recover_store(dir.path(), 599),
                         doctest::Contains("in use by another resourced"), Error);
  }
  dir.write("resourced.sqlite.damaged", "from before");
  CHECK_THROWS_WITH_AS((void)recover_store(dir.path(), 599),
                       doctest::Contains("is there from an earlier recovery"), Error);
  CHECK(resourced::test::read_file(store_path(dir.path())) == before);
}

/// Writes events that drain n0, from this one to that one.
void write_drains(const std::string& directory, Sequence first, Sequence last) {
  StoreWriter writer(store_path(directory));
  std::vector<Record> records;
  if (first == 1) records.push_back(record_of(1, definition_of("n[0-9]")));
  for (Sequence i = std::max<Sequence>(first, 2); i <= last; ++i)
    records.push_back(
        drain_record(i, static_cast<text::IdSet::Id>(i % 10), fmt::format("n{}", i % 10), "why"));
  writer.commit(records);
}

TEST_CASE("a store that lacks commits goes on without them when that is wanted, and tells which") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  write_drains(dir.path(), 1, 5);
  const std::string older = resourced::test::read_file(path);
  write_drains(dir.path(), 6, 8);
  dir.write("resourced.sqlite", older);
  std::filesystem::remove(path + "-wal");
  const std::string why = refusal(dir.path());
  CHECK(why.find("the last 3 events are missing, which were recorded") != std::string::npos);
  CHECK(why.ends_with("restore both, or go on without them with --recover-to 5"));
  CHECK_THROWS_WITH_AS((void)recover_store(dir.path(), 6), doctest::Contains("it has events up to 5"), Error);
  CHECK(recover_store(dir.path(), 5).lost ==
        std::vector<std::string>{"events 6 to 8, which this file lacks"});
  CHECK(refusal(dir.path()) == "");
  write_drains(dir.path(), 6, 6);
}

TEST_CASE("a backup beside a running daemon is a store to go back to, also after others have replaced it") {
  const resourced::test::TempDir dir;
  const std::string file = dir / "backup";
  write_drains(dir.path(), 1, 5);
  {
    const Store running(dir.path());
    const Backup made = backup_store(dir.path(), file);
    CHECK(made.last == 5);
    CHECK(made.bytes == std::filesystem::file_size(file));
    CHECK_THROWS_WITH_AS((void)backup_store(dir.path(), file), doctest::Contains("is there already"), Error);
    CHECK_THROWS_WITH_AS((void)restore_store(dir.path(), file), doctest::Contains("in use by another"),
                         Error);
  }
  CHECK(std::filesystem::status(file).permissions() ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  CHECK_FALSE(std::filesystem::exists(file + ".part"));
  write_drains(dir.path(), 6, 8);
  const Recovered restored = restore_store(dir.path(), file);
  CHECK(restored.last == 5);
  CHECK(restored.lost == std::vector<std::string>{"events 6 to 8, which this file lacks"});
  CHECK(std::filesystem::exists(restored.kept));
  CHECK(refusal(dir.path()) == "");
  {
    StoreWriter writer(store_path(dir.path()));
    CHECK(writer.last_sequence() == 5);
    CHECK(state_of(writer).targets.drains.ranks() == text::IdSet{2, 3, 4, 5});
  }

  // The store has another number now, so the backup cannot tell which events it lacks.
  write_drains(dir.path(), 6, 7);
  std::filesystem::remove(restored.kept);
  CHECK(
      restore_store(dir.path(), file).lost ==
      std::vector<std::string>{"all that the store as it was, with events up to 7, has and this file lacks"});

  const resourced::test::TempDir other;
  const Recovered moved = restore_store(other.path(), file);
  CHECK(moved.kept.empty());
  CHECK(moved.lost.empty());
  CHECK(refusal(other.path()) == "");
}

TEST_CASE("what is damaged or no store is neither backed up nor put in the place of one") {
  const resourced::test::TempDir dir;
  const std::string file = dir / "backup";
  CHECK_THROWS_WITH_AS((void)backup_store(dir.path(), file), doctest::Contains("there is no store"), Error);
  const std::string part = dir.write("backup.part", "of another one");
  CHECK_THROWS_WITH_AS((void)backup_store(dir.path(), file),
                       doctest::Contains("backup.part: is of another backup; remove it"), Error);
  CHECK(resourced::test::read_file(part) == "of another one");
  std::filesystem::remove(part);
  write_store(dir.path());
  CHECK_THROWS_WITH_AS((void)backup_store(dir.path(), file),
                       doctest::Contains("event 600 of the log is damaged"), Error);
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK_FALSE(std::filesystem::exists(file + ".part"));
  const std::string before = resourced::test::read_file(store_path(dir.path()));
  const auto refuses = [&](const std::string& backup, const char* why) {
    CHECK_THROWS_WITH_AS((void)restore_store(dir.path(), backup), doctest::Contains(why), Error);
    CHECK(resourced::test::read_file(store_path(dir.path())) == before);
  };
  refuses(file, "backup: there is no such file, and it is not the number of an event");
  refuses(store_path(dir.path()), "is the store itself");
  refuses(dir.write("text", std::string(10000, 'x')), "text: damaged, or not a store");
  refuses(dir.write("empty", ""), "empty: it has no tables");
}

TEST_CASE("damage before the last snapshot does not refuse the start") {
  const resourced::test::TempDir dir;
  write_store(dir.path());
  {
    StoreWriter writer(store_path(dir.path()));
    module::State state;
    state.defined = true;
    // The free of j1, which this state does not have, is after it.
    writer.write_past(SnapshotRow(601, state), nullptr);
  }
  CHECK(refusal(dir.path()).find("event 603 of the log cannot be applied") != std::string::npos);
  (void)recover_store(dir.path(), 602);
  Store store(dir.path());
  CHECK(store.load().ledger.find({"", "j2"}) != nullptr);
}

TEST_CASE(
    "a recovery goes back to the event up to which the log was trimmed, and the log goes on from there") {
  const resourced::test::TempDir dir;
  constexpr Sequence dropped = 500;
  write_store(dir.path());
  {
    StoreWriter writer(store_path(dir.path()));
    module::State state;
    state.defined = true;
    writer.write_past(SnapshotRow(dropped, state), nullptr);
    REQUIRE(writer.trim(wall_time(1e9), 10000, dropped) == dropped);
    writer.database().execute("UPDATE event SET text = 'damaged' WHERE sequence = 501");
  }
  CHECK(refusal(dir.path()).find("give up what came after event 500 with --recover-to 500") !=
        std::string::npos);
  CHECK(recover_store(dir.path(), dropped).lost.size() == 103);
  {
    Store store(dir.path());
    CHECK(store.last_sequence() == dropped);
    CHECK(store.last_timestamp() == wall_time(100 + dropped));
    CHECK_FALSE(store.damage());
    CHECK_FALSE(store.last_event());
    CHECK(store.load().defined);
  }
  StoreWriter writer(store_path(dir.path()));
  writer.commit({drain_record(dropped + 1, 3, "n3", "why")});
  CHECK(state_of(writer).targets.drains.ranks() == text::IdSet{3});
}

TEST_CASE("a recovery that was killed in the middle is told how to begin again") {
  const resourced::test::TempDir dir;
  write_store(dir.path());
  const std::string path = store_path(dir.path());
  const auto refuses = [&](const std::string& why) {
    CHECK_THROWS_WITH_AS((void)recover_store(dir.path(), damaged - 1), doctest::Contains(why.c_str()), Error);
  };
  dir.write("resourced.sqlite.damaged-wal", "moved");
  refuses("resourced.sqlite.damaged-wal: is there from an earlier recovery; move it away first");
  dir.write("resourced.sqlite.new", "the copy");
  refuses(fmt::format("{0}.damaged-wal: a recovery that did not end has moved {0}-wal here; rename it back",
                      path));
  std::filesystem::rename(path, path + ".damaged");
  refuses(fmt::format("{0}.damaged: a recovery that did not end has moved {0} here; rename it back", path));
  std::filesystem::rename(path + ".damaged", path);
  std::filesystem::remove(path + ".damaged-wal");
  CHECK(recover_store(dir.path(), damaged - 1).lost.size() == 4);
}

TEST_CASE("a store whose only snapshot is damaged is refused by the name of that, if its log was imported") {
  const resourced::test::TempDir dir;
  {
    StoreWriter writer(store_path(dir.path()));
    Record imported = drain_record(1, 0, "n0", "why");
    imported.rest.reset();
    writer.commit({imported, drain_record(2, 1, "n1", "why")});
    CHECK_THROWS_WITH_AS((void)state_of(writer),
                         doctest::Contains("resourced.sqlite: no snapshot leads to its last event; restore"),
                         Error);
    module::State state;
    state.defined = true;
    writer.write_past(SnapshotRow(2, state), nullptr);
    CHECK(state_of(writer).defined);
    writer.database().execute("UPDATE snapshot SET text = 'damaged'");
  }
  CHECK(refusal(dir.path()).find("resourced.sqlite: the snapshot of event 2 is damaged") !=
        std::string::npos);
}

TEST_CASE("a sum of times goes on after damage with a snapshot that is whole, and not with an older state") {
  const resourced::test::TempDir dir;
  write_store(dir.path());
  StoreWriter writer(store_path(dir.path()));
  const auto snapshot = [&](Sequence sequence, text::IdSet::Id rank) {
    module::State state;
    state.defined = true;
    (void)state.targets.drains.drain(text::IdSet{rank}, {{"why"}, wall_time(100), {}},
                                     module::Overwrite::reason_and_timestamp);
    writer.write_past(SnapshotRow(sequence, state), nullptr);
  };
  snapshot(601, 5);
  snapshot(602, 7);
  writer.database().execute("UPDATE snapshot SET text = 'damaged' WHERE sequence = 601");
  StoreReader log(writer.database(), writer.hosts());
  PastReader past(writer.database(), log);
  UsageReader usage(writer.database());
  UsageSums sums(proto::topics::ReportBy::total);
  UsageWalk walk({log, past, usage}, sums, 1, wall_time(0), 602, {});
  while (!walk.advance()) {
  }
  CHECK(walk.states().targets.drains.ranks() == text::IdSet{7});
}

}  // namespace
}  // namespace resourced::daemon::log

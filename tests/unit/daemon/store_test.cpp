// The store on its own: what it refuses, what it survives, and what it finds again.
#include "daemon/store/store.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "daemon/store/store_reader.hpp"
#include "daemon/store/store_writer.hpp"
#include "targets_of.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon::store {
namespace {

Record drain_record(Sequence sequence, IdSet::Id rank, const std::string& host, const std::string& reason) {
  Record record;
  record.sequence = sequence;
  record.timestamp = wall_time(100 + static_cast<double>(sequence));
  record.name = "drain";
  record.text = fmt::format(R"({{"timestamp":{},"name":"drain","context":{{"idset":"{}","nodelist":"{}"}}}})",
                            to_number(record.timestamp), rank, host);
  record.hosts = Hostlist::parse(host);
  record.changes.drained.push_back({{record.hosts, {}}, record.timestamp, reason});
  return record;
}

TEST_CASE("records that were committed are found again, and those that failed are not there at all") {
  const resourced::test::TempDir dir;
  {
    StoreWriter writer(store_path(dir.path()));
    writer.commit({drain_record(1, 0, "a", "x"), drain_record(2, 1, "b", "y")});
    // The same sequence again: the transaction as a whole is refused.
    CHECK_THROWS_AS(writer.commit({drain_record(3, 2, "c", "z"), drain_record(2, 3, "d", "z")}), Error);
  }
  StoreWriter writer(store_path(dir.path()));
  CHECK(writer.last_sequence() == 2);
  const RecordedState state = writer.load();
  REQUIRE(state.drains.size() == 2);
  CHECK(state.drains[1].target.host == "b");
  CHECK(state.drains[1].reason == "y");
  CHECK(state.drains[1].timestamp == wall_time(102));
}

TEST_CASE("a store that is in use is refused, and says so") {
  const resourced::test::TempDir dir;
  const StoreWriter first(store_path(dir.path()));
  try {
    const StoreWriter second(store_path(dir.path()));
    FAIL("it was opened twice");
  } catch (const Error& error) {
    CHECK(error.errnum() == EBUSY);
    CHECK(std::string(error.what()).find("resourced.sqlite: in use by another resourced") !=
          std::string::npos);
  }
}

TEST_CASE("records wait for no question") {
  const resourced::test::TempDir dir;
  Store store(dir.path());
  std::mutex mutex;
  std::condition_variable changed;
  bool is_asked = false;
  bool is_committed = false;
  store.start({[](const std::function<void()>& work) { work(); },
               [&](Sequence /*last*/) {
                 const std::lock_guard lock(mutex);
                 is_committed = true;
                 changed.notify_all();
               },
               [](const Error& /*error*/) {}});
  // The thread that reads is kept in its answer until the record is on disk.
  store.find_start({}, 1, [&](const HistoryStart& /*start*/) {
    std::unique_lock lock(mutex);
    is_asked = true;
    changed.notify_all();
    changed.wait(lock, [&] { return is_committed; });
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_asked; });
  }
  store.append(drain_record(1, 0, "a", "x"));
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return is_committed; });
  lock.unlock();
  store.stop();
  CHECK(store.counters().events == 1);
}

namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("what is not a store is refused and left as it is") {
  const resourced::test::TempDir dir;
  SUBCASE("text") {
    const std::string path = dir.write("resourced.sqlite", std::string(5000, 'x'));
    CHECK_THROWS_WITH_AS(StoreWriter{path}, doctest::Contains("damaged, or not a store"), Error);
    CHECK(std::filesystem::file_size(path) == 5000);
  }
  SUBCASE("another program's database") {
    const std::string path = dir.file("resourced.sqlite");
    Database(path).execute("CREATE TABLE t (x)");
    const std::string before = bytes_of(path);
    CHECK_THROWS_WITH_AS(StoreWriter{path}, doctest::Contains("not a store of resourced"), Error);
    CHECK(bytes_of(path) == before);
  }
  SUBCASE("a newer version") {
    const std::string path = store_path(dir.path());
    { StoreWriter writer(path); }
    Database(path).execute("PRAGMA user_version=99");
    const std::string before = bytes_of(path);
    CHECK_THROWS_WITH_AS(StoreWriter{path}, doctest::Contains("schema version 99"), Error);
    CHECK(bytes_of(path) == before);
  }
}

TEST_CASE("rows that cannot be read after the store was opened refuse it, and its files stay") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  // A copy of the files as a killed daemon leaves them.
  const resourced::test::TempDir killed;
  {
    StoreWriter writer(path);
    Record record = drain_record(1, 0, "a", "x");
    record.changes.inventory = {DefineMethod::reload, "no R", std::nullopt};
    writer.commit({record});
    std::filesystem::copy(dir.path(), killed.path());
  }
  const std::string copied = store_path(killed.path());
  const auto files = [&] {
    std::map<std::string, std::string> bytes;
    for (const auto& entry : std::filesystem::directory_iterator(killed.path())) {
      const std::string name = entry.path().filename().string();
      bytes[name] = name.ends_with("-shm") ? "" : bytes_of(entry.path().string());
    }
    return bytes;
  };
  const auto before = files();
  REQUIRE(before.at("resourced.sqlite-wal").size() > 4096);
  for (int start = 0; start < 2; ++start) {
    CHECK_THROWS_WITH_AS(StoreWriter{copied}.load(), doctest::Contains("table inventory"), Error);
    CHECK_THROWS_WITH_AS(Store{killed.path()}.load(), doctest::Contains("restore its directory"), Error);
    CHECK((files() == before));
  }
}

TEST_CASE("a store of an older version is brought to the present one with all that it knows") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  // Written by the daemon of version 1: two drains, a property and an expiration.
  std::filesystem::copy_file(RESOURCED_VECTORS "/store/version_1.sqlite", path);
  for (int opened = 0; opened < 2; ++opened) {
    StoreWriter writer(path);
    const RecordedState state = writer.load();
    REQUIRE(state.drains.size() == 3);
    CHECK(state.drains[0].target.host == "test2");
    CHECK(state.drains[0].reason == "bad dimm");
    CHECK(state.drains[2].target == TargetName{"test5", 0});
    CHECK_FALSE(state.drains[2].reason);
    REQUIRE(state.properties.size() == 1);
    CHECK(state.properties[0].target.host == "test1");
    REQUIRE(state.expiration);
    CHECK(state.expiration->value == 2000000000);
    // When its event was, not the last one.
    Statement event(writer.database(),
                    "SELECT timestamp FROM event WHERE text LIKE '%\"expiration\":2000000000%'");
    REQUIRE(event.step());
    CHECK(state.expiration->timestamp == wall_time(event.real(0)));
    CHECK(state.inventory.resources == nullptr);
  }
}

TEST_CASE("a store of version 2 keeps its log, whose events know their hosts, and what was drained") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  // Written by the daemon of version 2: test[0-99] start, test[2-3] and test5 are drained and test3 is not
  // any more, test1 has a property, test[10-89] are drained and undrained, an expiration, and test99 leaves.
  std::filesystem::copy_file(RESOURCED_VECTORS "/store/version_2.sqlite", path);
  for (int opened = 0; opened < 2; ++opened) {
    StoreWriter writer(path);
    const RecordedState state = writer.load();
    REQUIRE(state.drains.size() == 2);
    CHECK(state.drains[0].target.host == "test2");
    CHECK(state.drains[0].reason == "bad dimm");
    CHECK(state.drains[1].target.host == "test5");
    CHECK(state.properties.size() == 1);
    CHECK(state.shrunk.size() == 1);
    StoreReader reader(writer.database(), writer.hosts());
    CHECK(reader.page({}, 1, 10, 100).events.size() == 10);
    const auto sequences_of = [&](const std::string& host) {
      EventFilter filter;
      filter.targets = targets_of(host);
      std::vector<Sequence> sequences;
      for (const LoggedEvent& event : reader.page(filter, 1, 10, 100).events)
        sequences.push_back(event.sequence);
      return sequences;
    };
    CHECK(sequences_of("test3") == std::vector<Sequence>{1, 3, 5});
    CHECK(sequences_of("test50") == std::vector<Sequence>{1, 7, 8});
    CHECK(sequences_of("test99") == std::vector<Sequence>{1, 10});
    // Its R was not kept then.
    const auto define = reader.page({}, 2, 2, 1).events;
    REQUIRE(define.size() == 1);
    CHECK(define[0].defines);
    CHECK_FALSE(define[0].resources);
  }
}

TEST_CASE("a store of version 3 learns from its log when the expiration was set") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  // Written by the daemon of version 3: test[0-9] start, test2 is drained, test3 has a property, an
  // expiration, test9 leaves, test4 is drained.
  const std::string vector = RESOURCED_VECTORS "/store/version_3.sqlite";
  SUBCASE("as it was written") {
    std::filesystem::copy_file(vector, path);
    for (int opened = 0; opened < 2; ++opened) {
      StoreWriter writer(path);
      const RecordedState state = writer.load();
      CHECK(state.drains.size() == 2);
      CHECK(state.properties.size() == 1);
      CHECK(state.shrunk == std::vector<TargetName>{{"test9", 0}});
      StoreReader reader(writer.database(), writer.hosts());
      const auto log = reader.page({}, 1, 7, 100).events;
      REQUIRE(log.size() == 7);
      REQUIRE(log[4].text.find("expiration") != std::string::npos);
      REQUIRE(state.expiration);
      CHECK(state.expiration->value == 4000000000);
      CHECK(log[4].text.find(fmt::format("\"timestamp\":{},", to_number(state.expiration->timestamp))) !=
            std::string::npos);
    }
  }
  SUBCASE("with a damaged row it is refused before anything is made of it") {
    std::string bytes = bytes_of(vector);
    // In the row of the drain; in the event a quote follows.
    std::size_t reason = bytes.find("bad dimm");
    while (reason != std::string::npos && bytes[reason + 8] == '"')
      reason = bytes.find("bad dimm", reason + 1);
    REQUIRE(reason != std::string::npos);
    bytes[reason] = 'B';
    std::ofstream(path, std::ios::binary) << bytes;
    CHECK_THROWS_WITH_AS(StoreWriter{path}, doctest::Contains("do not match their checksum"), Error);
    CHECK((bytes_of(path) == bytes));
  }
}

// As a byte that changes on disk: the checksum stays as it was.
void damage_event(const std::string& path, Sequence sequence) {
  Database(path).execute(
      fmt::format("UPDATE event SET text = replace(text, 'drain', 'brain') WHERE sequence = {}", sequence)
          .c_str());
}

TEST_CASE("a store whose last events are damaged opens, with the time of the last whole one") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  constexpr Sequence events = 5;
  {
    StoreWriter writer(path);
    for (Sequence i = 1; i <= events; ++i) writer.commit({drain_record(i, 0, "a", "x")});
  }
  {
    const Store store(dir.path());
    CHECK(store.last_timestamp() == wall_time(105));
    CHECK_FALSE(store.damage());
  }
  for (Sequence damaged = events; damaged > 0; --damaged) {
    CAPTURE(damaged);
    damage_event(path, damaged);
    const Store store(dir.path());
    CHECK(store.last_sequence() == events);
    CHECK(store.last_timestamp() == wall_time(damaged == 1 ? 0 : 99 + static_cast<double>(damaged)));
    REQUIRE(store.damage());
    CHECK(std::string(store.damage()->what()).find("event 5 of the log is damaged") != std::string::npos);
  }
}

TEST_CASE("a journal whose events are whole is shown, whatever the event before them is") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  {
    StoreWriter writer(path);
    for (Sequence i = 1; i <= 24; ++i) writer.commit({drain_record(i, 0, "a", "x")});
  }
  damage_event(path, 21);
  StoreWriter writer(path);
  StoreReader reader(writer.database(), writer.hosts());
  const HistoryStart start = reader.start({}, 3);
  CHECK(start.first == 22);
  CHECK(start.truncated == wall_time(122));
  CHECK(reader.page({}, start.first, 24, 100).events.size() == 3);
  CHECK_THROWS_WITH_AS((void)reader.page({}, 21, 24, 100), doctest::Contains("event 21"), Error);
}

TEST_CASE("a filter of all hosts costs next to nothing, and what its copies share") {
  constexpr IdSet::Id hosts = 16384;
  const auto inventory =
      std::make_shared<const ResourceSet>(std::vector<ResourceGroup>{{IdSet::range(0, hosts - 1), {0}, {}}},
                                          Hostlist::parse(fmt::format("n[0-{}]", hosts - 1)));
  for (const std::string text : {"0-16383", "n[0-16383]", "n[0-16383],gone[0-999]"}) {
    CAPTURE(text);
    const EventTargets targets = event_targets(text, inventory);
    CHECK(targets.hosts().encode() == "n[0-16383]");
    CHECK(targets.ranks == IdSet::range(0, hosts - 1));
    CHECK(targets.strangers.size() == (text.ends_with("gone[0-999]") ? 1000 : 0));
  }
  const EventFilter filter{std::nullopt, targets_of("n[0-16383]")};
  const EventFilter copy = filter;  // NOLINT(performance-unnecessary-copy-initialization)
  CHECK(copy.targets.get() == filter.targets.get());
}

TEST_CASE("an event of an older store that cannot be read is an error for its readers, and for no others") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  std::filesystem::copy_file(RESOURCED_VECTORS "/store/version_2.sqlite", path);
  Database(path).execute("UPDATE event SET text = substr(text, 1, 50) WHERE sequence = 5");
  StoreWriter writer(path);
  CHECK(writer.load().drains.size() == 2);
  StoreReader reader(writer.database(), writer.hosts());
  const HistoryPage before = reader.page({}, 1, 10, 100);
  CHECK(before.events.size() == 4);
  CHECK(before.next == 5);
  CHECK_THROWS_WITH_AS((void)reader.page({}, 5, 10, 100), doctest::Contains("event 5 of the log is damaged"),
                       Error);
  CHECK(reader.page({}, 6, 10, 100).events.size() == 5);
}

std::string text_of(const TargetName& target) { return fmt::format("{}/{}", target.host, target.ordinal); }

TEST_CASE("an upgrade from version 2 finds the targets of hosts that stand for several ranks") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  // Written by the daemon of version 2 on n0,h,h,h,h,n1: `shrink 3`, `property add fast 4`, `property add big
  // 5`, `drain 2 bad dimm`, `drain n0 fan`, `shrink 5`. Its tables had h for ranks 2, 3 and 4 alike.
  std::filesystem::copy_file(RESOURCED_VECTORS "/store/version_2_repeated_hosts.sqlite", path);
  for (int opened = 0; opened < 2; ++opened) {
    const RecordedState state = StoreWriter(path).load();
    REQUIRE(state.drains.size() == 2);
    CHECK(text_of(state.drains[0].target) == "h/1");
    CHECK(state.drains[0].reason == "bad dimm");
    CHECK(text_of(state.drains[1].target) == "n0/0");
    REQUIRE(state.properties.size() == 1);
    CHECK(text_of(state.properties[0].target) == "h/3");
    CHECK(state.properties[0].name == "fast");
    REQUIRE(state.shrunk.size() == 2);
    CHECK(text_of(state.shrunk[0]) == "h/2");
    CHECK(text_of(state.shrunk[1]) == "n1/0");
  }
}

TEST_CASE("an upgrade from version 2 takes run-time changes out of the stored inventory") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  std::filesystem::copy_file(RESOURCED_VECTORS "/store/version_2_repeated_hosts.sqlite", path);
  const auto stored = [](const char* properties, double expiration) {
    return fmt::format(R"({{"version":1,"execution":{{"R_lite":[{{"rank":"0-1","children":{{"core":"0"}}}}],)"
                       R"("nodelist":["a,b"],"properties":{},"starttime":0,"expiration":{}}}}})",
                       properties, expiration);
  };
  Database(path).execute(fmt::format("INSERT INTO inventory(id, text) VALUES (1, '{}');"
                                     "DELETE FROM property; DELETE FROM event;"
                                     "INSERT INTO property VALUES ('added', 'b', 1), ('gone', 'a', 0);"
                                     "INSERT INTO expiration VALUES (1, 5000, 700)",
                                     stored(R"({"added":"0-1"})", 5000))
                             .c_str());
  const RecordedState state = StoreWriter(path).load();
  REQUIRE(state.inventory.resources);
  CHECK(*state.inventory.resources == ResourceSet::parse(stored(R"({"added":"0","gone":"0"})", 700)));
}

TEST_CASE("an inventory that no configuration names is there at the next start") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  const std::string text =
      R"({"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-3"}}],"nodelist":["n[0-1]"],)"
      R"("starttime":0.0,"expiration":0.0}})";
  {
    StoreWriter writer(path);
    Record record = drain_record(1, 0, "n0", "why");
    record.changes.inventory = {DefineMethod::dynamic_discovery, text, std::nullopt};
    writer.commit({record});
  }
  const auto discovered = StoreWriter(path).load().inventory;
  REQUIRE(discovered.resources);
  CHECK(discovered.method == DefineMethod::dynamic_discovery);
  CHECK(*discovered.resources == ResourceSet::parse(text));
  CHECK_FALSE(discovered.replaced);
  {
    StoreWriter writer(path);
    Record record = drain_record(2, 0, "n0", "why");
    record.changes.inventory = {DefineMethod::reload, text, "what was configured"};
    writer.commit({record});
  }
  const auto loaded = StoreWriter(path).load().inventory;
  CHECK(loaded.method == DefineMethod::reload);
  CHECK(loaded.replaced == "what was configured");
}

TEST_CASE("one corrupted byte anywhere never brings the daemon down, nor makes up a state") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  {
    StoreWriter writer(path);
    for (Sequence i = 1; i <= 20; ++i) {
      writer.commit({drain_record(i, static_cast<IdSet::Id>(i), fmt::format("host{}", i), "why")});
    }
  }
  const std::string good = bytes_of(path);
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    std::string bad = good;
    // The head of the file byte by byte, the rest at random.
    const std::size_t offset = round < 100 ? static_cast<std::size_t>(round) : random() % bad.size();
    bad[offset] = static_cast<char>(bad[offset] ^ (1 << (random() % 8)));
    const resourced::test::TempDir copy;
    copy.write("resourced.sqlite", bad);
    try {
      StoreWriter writer(copy.file("resourced.sqlite"));
      const std::size_t drains = writer.load().drains.size();
      CHECK(drains <= 20);
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("resourced.sqlite") != std::string::npos);
      ++refused;
    }
  }
  CHECK(refused > 20);
}

TEST_CASE("events of a host are found among those of others, narrow or wide") {
  const resourced::test::TempDir dir;
  StoreWriter writer(store_path(dir.path()));
  std::vector<Record> records;
  for (Sequence i = 1; i <= 3000; ++i) {
    records.push_back(
        drain_record(i, static_cast<IdSet::Id>(i % 100), fmt::format("host{}", i % 100), "why"));
  }
  Record wide = drain_record(3001, 7, "host[0-99]", "all");
  wide.changes.drained.clear();
  records.push_back(wide);
  writer.commit(records);
  StoreReader reader(writer.database(), writer.hosts());
  EventFilter filter;
  filter.targets = targets_of("host7");
  Sequence from = 1;
  std::vector<Sequence> found;
  while (from <= 3001) {
    const HistoryPage page = reader.page(filter, from, 3001, 8);
    CHECK(page.events.size() <= 8);
    for (const LoggedEvent& event : page.events) found.push_back(event.sequence);
    REQUIRE(page.next > from);
    from = page.next;
  }
  REQUIRE(found.size() == 31);
  for (std::size_t i = 0; i < 30; ++i) CHECK(found[i] == 7 + 100 * i);
  CHECK(found[30] == 3001);
}

TEST_CASE("a page of a host's events looks at so many others and no more") {
  constexpr Sequence events = 3 * StoreReader::most_looked_at;
  constexpr Sequence apart = 1000;
  const resourced::test::TempDir dir;
  StoreWriter writer(store_path(dir.path()));
  std::vector<Record> records;
  for (Sequence i = 1; i <= events; ++i) {
    // Each block has one event of host1, so that all have to be looked at; host0 is rare.
    const bool is_sought = i % apart == 0;
    records.push_back(
        drain_record(i, 0, is_sought ? "host[0-99]" : (i % block_size == 7 ? "host1" : "other"), ""));
    records.back().changes.drained.clear();
  }
  writer.commit(records);
  StoreReader reader(writer.database(), writer.hosts());
  EventFilter filter;
  filter.targets = targets_of("host0,host1");
  std::vector<Sequence> found;
  for (Sequence from = 1; from <= events;) {
    const HistoryPage page = reader.page(filter, from, events, 1000);
    REQUIRE(page.next > from);
    CHECK(page.next - from <= StoreReader::most_looked_at);
    for (const LoggedEvent& event : page.events) {
      if (event.sequence % apart == 0) found.push_back(event.sequence);
    }
    from = page.next;
  }
  REQUIRE(found.size() == events / apart);
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == (i + 1) * apart);
}

TEST_CASE("a page of a rare host's events passes over blocks that have none") {
  constexpr Sequence events = 100 * block_size;
  const resourced::test::TempDir dir;
  StoreWriter writer(store_path(dir.path()));
  std::vector<Record> records;
  for (Sequence i = 1; i <= events; ++i) {
    records.push_back(drain_record(i, 0, i == 777 || i + 3 == events ? "rare" : "other[0-99]", ""));
    records.back().changes.drained.clear();
  }
  writer.commit(records);
  StoreReader reader(writer.database(), writer.hosts());
  EventFilter filter;
  filter.targets = targets_of("rare");
  // One page is enough, though all events together are more than it may look at.
  const HistoryPage page = reader.page(filter, 1, events, 1000);
  CHECK(page.next == events + 1);
  REQUIRE(page.events.size() == 2);
  CHECK(page.events[0].sequence == 777);
  CHECK(page.events[1].sequence == events - 3);
}

TEST_CASE("a page has so many bytes and no more, and at most one definition") {
  const resourced::test::TempDir dir;
  StoreWriter writer(store_path(dir.path()));
  std::vector<Record> records;
  for (Sequence i = 1; i <= 8; ++i) records.push_back(drain_record(i, 0, "a", "x"));
  for (Record& record : records) record.text.resize(PageLimit::most_bytes / 3, ' ');
  records[0].text.resize(2 * PageLimit::most_bytes, ' ');
  for (const std::size_t define : {5U, 6U}) {
    records[define].name = "resource-define";
    records[define].text = fmt::format("define {}", define);
    records[define].resources = std::make_shared<const std::string>(fmt::format("R {}", define));
  }
  writer.commit(records);
  StoreReader reader(writer.database(), writer.hosts());
  std::vector<std::vector<Sequence>> pages;
  for (Sequence from = 1; from <= 8;) {
    const HistoryPage page = reader.page({}, from, 8, 1000);
    pages.emplace_back();
    for (const LoggedEvent& event : page.events) {
      pages.back().push_back(event.sequence);
      if (event.defines) CHECK(*event.resources == fmt::format("R {}", event.sequence - 1));
    }
    REQUIRE(page.next > from);
    from = page.next;
  }
  // The first is larger than a page by itself.
  CHECK(pages == std::vector<std::vector<Sequence>>{{1}, {2, 3, 4}, {5, 6}, {7, 8}});
}

TEST_CASE("a reader that begins while history is trimmed begins where nothing is trimmed any more") {
  constexpr Sequence events = 3000;
  constexpr Sequence kept = 2000;
  const resourced::test::TempDir dir;
  StoreWriter writer(store_path(dir.path()));
  std::vector<Record> records;
  for (Sequence i = 1; i <= events; ++i) records.push_back(drain_record(i, 0, "a", "x"));
  writer.commit(records);
  const WallTime horizon = records[kept - 1].timestamp;
  StoreReader reader(writer.database(), writer.hosts());
  for (std::size_t dropped = 1; dropped > 0;) {
    for (const bool of_host : {false, true}) {
      EventFilter filter;
      if (of_host) filter.targets = targets_of("a");
      const HistoryStart start = reader.start(filter, 100000, horizon);
      CHECK(start.first == kept);
      CHECK(start.truncated == horizon - Seconds(1));
      dropped = writer.trim(horizon, 100);
      const HistoryPage page = reader.page(filter, start.first, events, 1000);
      CHECK_FALSE(page.has_gap);
      REQUIRE_FALSE(page.events.empty());
      CHECK(page.events.front().sequence == kept);
    }
  }
  // The newest event is kept whatever its age.
  CHECK(reader.start({}, 100000, wall_time(1e9)).first == events);
}

TEST_CASE("readers without end do not let the write-ahead log grow without end") {
  const resourced::test::TempDir dir;
  Store store(dir.path());
  std::atomic<Sequence> committed = 0;
  std::atomic<bool> is_over = false;
  store.start({[](const std::function<void()>& work) { work(); }, [&](Sequence last) { committed = last; },
               [](const Error& /*error*/) {}});
  std::function<void(const HistoryPage&)> again = [&](const HistoryPage& page) {
    if (is_over) return;
    const Sequence last = std::max<Sequence>(committed, 1);
    store.read_page({}, page.next > last ? 1 : page.next, last, 1000, again);
  };
  Sequence sequence = 0;
  const auto append = [&](int count) {
    for (int i = 0; i < count; ++i) {
      Record record = drain_record(++sequence, 0, "a", "x");
      record.text += std::string(4000, ' ');
      store.append(std::move(record));
    }
    while (committed < sequence) std::this_thread::yield();
  };
  append(1);
  // Three at a time, so that no pause comes by itself.
  for (int i = 0; i < 3; ++i) store.read_page({}, 1, 1, 1000, again);
  std::uintmax_t largest = 0;
  for (int i = 0; i < 400; ++i) {
    append(50);
    largest = std::max(largest, std::filesystem::file_size(store_path(dir.path()) + "-wal"));
  }
  is_over = true;
  store.stop();
  // 80 MB were written; 16 MiB may be there, and as much as is written between two looks.
  CHECK(largest < (std::uintmax_t{24} << 20));
}

}  // namespace
}  // namespace resourced::daemon::store

// The store on its own: what it refuses, what it survives, and what it finds again.
#include "daemon/store.hpp"

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "daemon/store_reader.hpp"
#include "daemon/store_writer.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon {
namespace {

Record drain_record(Sequence sequence, IdSet::Id rank, const std::string& host, const std::string& reason) {
  Record record;
  record.sequence = sequence;
  record.timestamp = 100 + static_cast<double>(sequence);
  record.name = "drain";
  record.text = fmt::format(R"({{"timestamp":{},"name":"drain","context":{{"idset":"{}","nodelist":"{}"}}}})",
                            record.timestamp, rank, host);
  record.hosts = Hostlist::parse(host);
  record.drained.push_back({{IdSet{rank}, record.timestamp, reason}, record.hosts});
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
  CHECK(state.drains[1].host == "b");
  CHECK(state.drains[1].reason == "y");
  CHECK(state.drains[1].timestamp == 102);
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

TEST_CASE("records wait for one question at the most") {
  const resourced::test::TempDir dir;
  Store store(dir.path());
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> order;
  bool is_held = true;
  bool is_first = true;
  // What the thread posts tells its order. It is kept in its first answer until all else is queued.
  store.start({[&](const std::function<void()>& work) {
                 std::unique_lock lock(mutex);
                 work();
                 changed.notify_one();
                 if (std::exchange(is_first, false)) changed.wait(lock, [&] { return !is_held; });
               },
               [&](Sequence /*last*/) { order.emplace_back("record"); }, [](const Error& /*error*/) {}});
  const auto ask = [&] {
    store.find_start({}, 1, [&](const HistoryStart& /*start*/) { order.emplace_back("question"); });
  };
  ask();
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !order.empty(); });
  }
  ask();
  ask();
  store.append(drain_record(1, 0, "a", "x"));
  std::unique_lock lock(mutex);
  is_held = false;
  changed.notify_one();
  changed.wait(lock, [&] { return order.size() == 4; });
  lock.unlock();
  store.stop();
  CHECK(order == std::vector<std::string>{"question", "record", "question", "question"});
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

TEST_CASE("a store of an older version is brought to the present one with all that it knows") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  // Written by the daemon of version 1: two drains, a property and an expiration.
  std::filesystem::copy_file(RESOURCED_VECTORS "/store/version_1.sqlite", path);
  for (int opened = 0; opened < 2; ++opened) {
    StoreWriter writer(path);
    const RecordedState state = writer.load();
    REQUIRE(state.drains.size() == 3);
    CHECK(state.drains[0].host == "test2");
    CHECK(state.drains[0].reason == "bad dimm");
    CHECK(state.drains[2].rank == 5);
    CHECK_FALSE(state.drains[2].reason);
    REQUIRE(state.properties.size() == 1);
    CHECK(state.properties[0].host == "test1");
    REQUIRE(state.expiration);
    CHECK(state.expiration->value == 2000000000);
    CHECK(state.inventory.resources == nullptr);
  }
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
    record.inventory = {DefineMethod::dynamic_discovery, text, std::nullopt};
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
    record.inventory = {DefineMethod::reload, text, "what was configured"};
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
  wide.drained.clear();
  records.push_back(wide);
  writer.commit(records);
  StoreReader reader(writer.database());
  EventFilter filter;
  filter.hosts = {{"host7"}};
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

TEST_CASE("a page of a host's events looks at so many wide ones and no more") {
  constexpr Sequence events = 100;
  constexpr std::size_t limit = 8;
  const resourced::test::TempDir dir;
  StoreWriter writer(store_path(dir.path()));
  std::vector<Record> records;
  for (Sequence i = 1; i <= events; ++i) {
    records.push_back(drain_record(i, 0, i % 10 == 0 ? "host[0-99]" : "other[0-99]", "rack"));
    records.back().drained.clear();
  }
  writer.commit(records);
  StoreReader reader(writer.database());
  // A few hosts and many: each event is looked at in another way.
  for (const std::size_t count : {1U, 40U}) {
    CAPTURE(count);
    EventFilter filter;
    filter.hosts.emplace();
    for (std::size_t host = 0; host < count; ++host)
      filter.hosts->push_back(fmt::format("host{}", 99 - host));
    std::vector<Sequence> found;
    for (Sequence from = 1; from <= events;) {
      const HistoryPage page = reader.page(filter, from, events, limit);
      REQUIRE(page.next > from);
      CHECK(page.next - from <= limit);
      for (const LoggedEvent& event : page.events) found.push_back(event.sequence);
      from = page.next;
    }
    CHECK(found == std::vector<Sequence>{10, 20, 30, 40, 50, 60, 70, 80, 90, 100});
  }
}

}  // namespace
}  // namespace resourced::daemon

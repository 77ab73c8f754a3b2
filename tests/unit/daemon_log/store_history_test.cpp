// Reading history: pages, filters by host, damaged events, and readers concurrent with the writer.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "daemon/log/store.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_writer.hpp"
#include "store_samples.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon::log {

using text::IdSet;

namespace {

// Like a byte that changes on disk: the checksum is unchanged.
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
  const auto inventory = std::make_shared<const rset::ResourceSet>(
      std::vector<rset::ResourceGroup>{{IdSet::range(0, hosts - 1), {0}, {}}},
      text::Hostlist::parse(fmt::format("n[0-{}]", hosts - 1)));
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

TEST_CASE("events of a host are found among those of others, narrow or wide") {
  const resourced::test::TempDir dir;
  StoreWriter writer(store_path(dir.path()));
  std::vector<Record> records;
  for (Sequence i = 1; i <= 3000; ++i) {
    records.push_back(
        drain_record(i, static_cast<IdSet::Id>(i % 100), fmt::format("host{}", i % 100), "why"));
  }
  records.push_back(drain_record(3001, 7, "host[0-99]", "all"));
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
    // Each block has one event of host1, so that each must be searched; host0 is rare.
    const bool is_sought = i % apart == 0;
    records.push_back(
        drain_record(i, 0, is_sought ? "host[0-99]" : (i % block_size == 7 ? "host1" : "other"), ""));
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
  }
  writer.commit(records);
  StoreReader reader(writer.database(), writer.hosts());
  EventFilter filter;
  filter.targets = targets_of("rare");
  // One page is enough, although all events together exceed what a page may search.
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
  // The newest event is kept, however old it is.
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
    store.ask(ReadPage{{}, page.next > last ? 1 : page.next, last, 1000, again});
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
  // Three at a time, so that the readers never pause.
  for (int i = 0; i < 3; ++i) store.ask(ReadPage{{}, 1, 1, 1000, again});
  std::uintmax_t largest = 0;
  for (int i = 0; i < 400; ++i) {
    append(50);
    largest = std::max(largest, std::filesystem::file_size(store_path(dir.path()) + "-wal"));
  }
  is_over = true;
  store.stop();
  // 80 MB were written. The limit is 16 MiB plus the bytes written between a few attempts.
  CHECK(largest < (std::uintmax_t{20} << 20));
}

}  // namespace
}  // namespace resourced::daemon::log

// The store on its own: refused commits, crashes and damage, and the state that it loads. (Reading its
// history: store_history_test.cpp.)
#include "daemon/log/store.hpp"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <new>
#include <random>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_writer.hpp"
#include "store_samples.hpp"
#include "temp_dir.hpp"
#include "thorough.hpp"

namespace resourced::daemon::log {

using module::DefineMethod;

namespace {

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
  const module::State state = state_of(writer);
  CHECK(state.targets.drains.ranks() == text::IdSet{0, 1});
  CHECK(state.targets.drains.find(1)->reason == "y");
  CHECK(state.targets.drains.find(1)->timestamp == wall_time(102));
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
  // The answer blocks the reading thread until the record is on disk.
  const auto hold = [&](const HistoryStart& /*start*/) {
    std::unique_lock lock(mutex);
    is_asked = true;
    changed.notify_all();
    changed.wait(lock, [&] { return is_committed; });
  };
  store.ask(FindStart{{}, 1, hold});
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

TEST_CASE("the end of a store keeps the present state only of an event that it has") {
  const resourced::test::TempDir dir;
  module::State other;
  other.defined = true;
  const auto end_with = [&](const module::State* present, Sequence applied) {
    Store store(dir.path());
    store.start({[](const std::function<void()>& work) { work(); }, [](Sequence /*last*/) {},
                 [](const Error& error) { FAIL(error.what()); }});
    if (store.last_sequence() == 0) {
      store.append(record_of(1, definition_of("a,b")));
      store.append(drain_record(2, 1, "b", "y"));
    }
    store.stop(present, applied);
  };
  const auto drained = [&] { return Store(dir.path()).load().targets.drains.ranks(); };
  end_with(nullptr, 0);
  CHECK(drained() == text::IdSet{1});
  // The state of an event that was decided and not committed.
  end_with(&other, 3);
  CHECK(drained() == text::IdSet{1});
  end_with(&other, 2);
  CHECK(drained().empty());
}

TEST_CASE("whatever ends a thread of the store is a failure of the store") {
  const resourced::test::TempDir dir;
  Store store(dir.path());
  std::vector<Error> failures;
  const auto run_out = [](const auto&) { throw std::bad_alloc(); };
  store.start({[](const std::function<void()>& work) { work(); }, run_out,
               [&](const Error& error) { failures.push_back(error); }});
  SUBCASE("of that which writes") { store.append(drain_record(1, 0, "a", "x")); }
  SUBCASE("of that which reads") {
    std::promise<void> is_asked;
    const auto fail = [&](const HistoryStart& /*start*/) {
      is_asked.set_value();
      throw std::bad_alloc();
    };
    store.ask(FindStart{{}, 1, fail});
    is_asked.get_future().wait();
  }
  store.stop();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].errnum() == EIO);
  CHECK(std::string(failures[0].what()) == std::bad_alloc().what());
}

TEST_CASE("records that are appended together are committed together") {
  const resourced::test::TempDir dir;
  Store store(dir.path());
  std::vector<Sequence> committed;
  store.start({[](const std::function<void()>& work) { work(); },
               [&](Sequence last) { committed.push_back(last); }, [](const Error& /*error*/) {}});
  constexpr Sequence together = 50;
  constexpr Sequence most = 100 * together;
  for (Sequence first = 1; first <= most; first += together) {
    std::vector<Record> records;
    for (Sequence at = first; at < first + together; ++at) records.push_back(drain_record(at, 0, "a", "x"));
    store.append_all(std::move(records));
  }
  store.stop();
  REQUIRE_FALSE(committed.empty());
  CHECK(committed.back() == most);
  for (const Sequence last : committed) CHECK(last % together == 0);
}

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
    const std::string before = resourced::test::read_file(path);
    CHECK_THROWS_WITH_AS(StoreWriter{path}, doctest::Contains("not a store of resourced"), Error);
    CHECK(resourced::test::read_file(path) == before);
  }
  SUBCASE("a version before 0.1.0") {
    const std::string path = store_path(dir.path());
    { StoreWriter writer(path); }
    Database(path).execute("PRAGMA application_id=0x52535243; PRAGMA user_version=10");
    const std::string before = resourced::test::read_file(path);
    CHECK_THROWS_WITH_AS(StoreWriter{path}, doctest::Contains("a store of a resourced before 0.1.0"), Error);
    CHECK(resourced::test::read_file(path) == before);
  }
  SUBCASE("a newer version") {
    const std::string path = store_path(dir.path());
    { StoreWriter writer(path); }
    Database(path).execute("PRAGMA user_version=99");
    const std::string before = resourced::test::read_file(path);
    CHECK_THROWS_WITH_AS(StoreWriter{path}, doctest::Contains("schema version 99"), Error);
    CHECK(resourced::test::read_file(path) == before);
  }
}

TEST_CASE("drains keep their actors and ends, as do those that begin later, until an event ends them") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  Sequence sequence = 0;
  const auto commit = [&](const module::EventBody& body, const std::optional<module::Actor>& by = {}) {
    Record record = record_of(++sequence, body, {}, by);
    StoreWriter(path).commit({record});
  };
  const auto hosts = [](const char* list) { return text::Hostlist::parse(list); };
  const auto loaded = [&] {
    StoreWriter writer(path);
    return state_of(writer);
  };
  commit(definition_of("test[0-9]"));
  commit(module::DrainEvent{{"fan", wall_time(4000000100)}, {4}, hosts("test4"), {}}, module::ByUser{1000});
  commit(module::DrainEvent{{"x"}, {5}, hosts("test5")}, module::ByHost{"test5"});
  commit(module::DrainEvent{{}, {9}, hosts("test9")});
  commit(module::ScheduleEvent{
      {std::nullopt, wall_time(4000000060)}, {6, 7}, hosts("test[6-7]"), wall_time(4000000050)});
  commit(module::ScheduleEvent{{"x"}, {8}, hosts("test8"), wall_time(4000000070)}, module::ByKey{"ops"});
  commit(module::CancelEvent{{6}, hosts("test6")});
  const module::State state = loaded();
  const module::DrainTable& drains = state.targets.drains;
  REQUIRE(drains.ranks() == text::IdSet{4, 5, 9});
  CHECK(drains.find(4)->by == module::Actor(module::ByUser{1000}));
  CHECK(drains.find(4)->until == wall_time(4000000100));
  CHECK(drains.find(5)->by == module::Actor(module::ByHost{"test5"}));
  CHECK_FALSE(drains.find(5)->until);
  CHECK_FALSE(drains.find(9)->by);
  CHECK_FALSE(drains.find(9)->reason);
  const module::DrainTable& scheduled = state.targets.scheduled.next();
  REQUIRE(scheduled.ranks() == text::IdSet{7, 8});
  CHECK(scheduled.find(7)->timestamp == wall_time(4000000050));
  CHECK_FALSE(scheduled.find(7)->reason);
  CHECK(scheduled.find(7)->until == wall_time(4000000060));
  CHECK(scheduled.find(8)->by == module::Actor(module::ByKey{"ops"}));
  CHECK_FALSE(scheduled.find(8)->until);
  commit(module::CancelEvent{{7, 8}, hosts("test[7-8]")});
  commit(module::UndrainEvent{{4, 5, 9}, hosts("test[4-5,9]"), {}});
  CHECK(loaded().targets.scheduled.ranks().empty());
  CHECK(loaded().targets.drains.ranks().empty());
}

TEST_CASE("events that cannot be read after the store was opened refuse it, and its files stay") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  // A copy of the files as a killed daemon leaves them.
  const resourced::test::TempDir killed;
  {
    StoreWriter writer(path);
    Record unreadable = record_of(1, definition_of("a"));
    unreadable.rest = "no JSON";
    writer.commit({unreadable, drain_record(2, 0, "a", "x")});
    std::filesystem::copy(dir.path(), killed.path());
  }
  const std::string copied = store_path(killed.path());
  const auto files = [&] {
    std::map<std::string, std::string> bytes;
    for (const auto& entry : std::filesystem::directory_iterator(killed.path())) {
      const std::string name = entry.path().filename().string();
      bytes[name] = name.ends_with("-shm") ? "" : resourced::test::read_file(entry.path().string());
    }
    return bytes;
  };
  const auto before = files();
  REQUIRE(before.at("resourced.sqlite-wal").size() > 4096);
  for (int start = 0; start < 2; ++start) {
    CHECK_THROWS_WITH_AS(static_cast<void>(Store{killed.path()}.load()),
                         doctest::Contains("event 1 of the log cannot be applied"), Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(Store{killed.path()}.load()), doctest::Contains(copied.c_str()),
                         Error);
    CHECK((files() == before));
  }
}

TEST_CASE("an event that does not follow from those before it refuses the start, and is named") {
  const resourced::test::TempDir dir;
  const text::Hostlist host = text::Hostlist::parse("a");
  const auto refusal = [&](const module::EventBody& body) {
    const resourced::test::TempDir state;
    StoreWriter writer(store_path(state.path()));
    writer.commit({record_of(1, definition_of("a,b")), record_of(2, body)});
    try {
      (void)state_of(writer);
      return std::string();
    } catch (const Error& error) {
      CHECK(error.errnum() == EBADMSG);
      return std::string(error.what());
    }
  };
  module::Allocation allocation;
  allocation.name.id = "j";
  allocation.resources = rset::ResourceSet({{{0}, {0}, {}}}, host);
  allocation.text = std::make_shared<const std::string>(allocation.resources.encode());
  const auto shared = std::make_shared<const module::Allocation>(allocation);
  for (const module::EventBody& body : std::vector<module::EventBody>{
           module::UndrainEvent{{0}, host, {}}, module::OfflineEvent{{0}}, module::LivelyEvent{{0}},
           module::ShrinkEvent{{7}, host}, module::LossEvent{{7}, host},
           module::PropertyEvent{{{"p", {7}}}, {}, host}, module::UnshrinkEvent{{9}, host},
           module::ForgetEvent{host}, module::FreeEvent{{"j"}, {0}, host},
           module::AllocEvent{{shared, shared}}}) {
    CAPTURE(body.index());
    CHECK(refusal(body).find("event 2 of the log cannot be applied") != std::string::npos);
  }
  CHECK(refusal(module::AllocEvent{{shared}}) == "");
}

TEST_CASE("an inventory that no configuration names is there at the next start") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  const auto loaded = [&] {
    StoreWriter writer(path);
    return state_of(writer).kept_inventory;
  };
  module::DefineEvent discovered = definition_of("n[0-1]");
  discovered.method = DefineMethod::dynamic_discovery;
  { StoreWriter(path).commit({record_of(1, discovered)}); }
  module::KeptInventory kept = loaded();
  REQUIRE(kept.resources);
  CHECK(kept.method == DefineMethod::dynamic_discovery);
  CHECK(*kept.resources == *discovered.inventory);
  CHECK_FALSE(kept.replaced);
  module::DefineEvent reloaded = definition_of("n[0-1]");
  reloaded.method = DefineMethod::reload;
  reloaded.loaded.emplace().replaced = "what was configured";
  { StoreWriter(path).commit({record_of(2, reloaded)}); }
  kept = loaded();
  CHECK(kept.method == DefineMethod::reload);
  CHECK(kept.replaced == "what was configured");
}

TEST_CASE("one corrupted byte anywhere never brings the daemon down, nor makes up a state") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  {
    StoreWriter writer(path);
    for (Sequence i = 1; i <= 20; ++i) {
      writer.commit({drain_record(i, static_cast<text::IdSet::Id>(i), fmt::format("host{}", i), "why")});
    }
  }
  const std::string good = resourced::test::read_file(path);
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < resourced::test::thorough(400, 100); ++round) {
    CAPTURE(round);
    std::string bad = good;
    // The head of the file byte by byte, the rest at random.
    const std::size_t offset = round < 100 ? static_cast<std::size_t>(round) : random() % bad.size();
    bad[offset] = static_cast<char>(bad[offset] ^ (1 << (random() % 8)));
    const resourced::test::TempDir copy;
    copy.write("resourced.sqlite", bad);
    try {
      StoreWriter writer(copy.file("resourced.sqlite"));
      const module::State state = state_of(writer);
      CHECK(state.targets.drains.ranks() == text::IdSet::range(1, 20));
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("resourced.sqlite") != std::string::npos);
      ++refused;
    }
  }
  CHECK(refused > 20);
}

}  // namespace
}  // namespace resourced::daemon::log

// Copies of a store that begin with its last event, and how one takes the place of another store.
#include "daemon/log/store_copy.hpp"

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "daemon/log/store_install.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_schema.hpp"
#include "daemon/log/store_writer.hpp"
#include "os/sha256.hpp"
#include "past_history.hpp"
#include "proto/documents.hpp"
#include "proto/state_json.hpp"
#include "store_samples.hpp"

namespace resourced::daemon::test {

namespace fs = std::filesystem;
using log::CopiedStore;
using log::Sequence;
using log::Store;

namespace {

constexpr std::size_t most_bytes = std::size_t{64} << 20;

std::variant<CopiedStore, Error> copy_of(Stand& stand, std::size_t most = most_bytes) {
  std::optional<std::variant<CopiedStore, Error>> copy;
  stand.store->copy(most, [&](std::variant<CopiedStore, Error> made) { copy = std::move(made); });
  while (!copy) stand.step();
  return *std::move(copy);
}

std::string path_in(const std::string& directory) { return log::store_path(directory); }

void give(const std::string& directory, const CopiedStore& copy) {
  log::IncomingStore incoming(directory);
  constexpr std::size_t piece = 10000;
  for (std::size_t at = 0; at < copy.bytes; at += piece)
    incoming.append(copy.read(at, std::min(piece, copy.bytes - at)));
}

// The state after the last event of a store that has not been started.
std::string state_of(Store& store) {
  proto::Documents documents(os::sha256);
  return proto::encode_state(store.load(), documents);
}

bool is_alone(const std::string& directory) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name != log::store_file && name != "resourced.lock") return false;
  }
  return true;
}

// A store with events that are in its write-ahead log alone, as a killed daemon leaves it.
void leave_killed(const std::string& directory, Sequence events) {
  const resourced::test::TempDir dir;
  const std::string path = path_in(dir.file("state"));
  log::StoreWriter writer(path);
  for (Sequence i = 1; i <= events; ++i) writer.commit({log::drain_record(i, 1, "old", "killed")});
  for (const char* suffix : {"", "-wal"})
    fs::copy_file(path + suffix, path_in(directory) + suffix, fs::copy_options::overwrite_existing);
}

}  // namespace

TEST_SUITE_BEGIN("copy of a store");

TEST_CASE("it has the last event and the state after it, and begins there, over random histories") {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    History history(seed);
    history.run(60);
    Stand& stand = history.stand;
    const auto made = copy_of(stand);
    REQUIRE(std::holds_alternative<CopiedStore>(made));
    const auto& copy = std::get<CopiedStore>(made);
    CHECK(copy.sequence == stand.committed);
    CHECK_FALSE(fs::exists(log::copy_path(path_in(stand.dir.file("state")))));

    const resourced::test::TempDir dir;
    give(dir.path(), copy);
    log::install_store(dir.path(), copy.sequence);
    CHECK(is_alone(dir.path()));
    stand.store->stop();
    stand.service.reset();
    stand.store.reset();
    stand.store = std::make_unique<Store>(stand.dir.file("state"));
    Store installed(dir.path());
    CHECK(installed.last_sequence() == stand.store->last_sequence());
    CHECK(installed.last_timestamp() == stand.store->last_timestamp());
    CHECK_FALSE(installed.damage());
    CHECK(state_of(installed) == state_of(*stand.store));
  }
}

TEST_CASE("a daemon goes on with it, and its past begins with the copy") {
  History history(3);
  history.run(40);
  const json before = history.status();
  const double time_before = history.stand.now;
  history.run(1);
  Stand& stand = history.stand;
  const auto made = copy_of(stand);
  const auto& copy = std::get<CopiedStore>(made);
  const json then = history.status();
  const double time = stand.now;
  stand.store->stop();
  stand.service.reset();
  stand.store.reset();
  give(stand.dir.file("state"), copy);
  log::install_store(stand.dir.file("state"), copy.sequence);
  stand.store = std::make_unique<Store>(stand.dir.file("state"));
  // The start excludes no target, and belongs to a later time than `then`.
  ++stand.now;
  stand.restart();
  history.begin();
  CHECK(stand.committed > copy.sequence);
  CHECK(history.at(time).first == then);
  CHECK(history.at(time_before - 1000).second == ENODATA);
  // Its drains and properties are those of the present.
  CHECK(history.status()["drain"] == then["drain"]);
  history.run(40);
  for (const Moment& moment : history.moments) {
    if (moment.time > time) history.check(moment);
  }
}

TEST_CASE("events that follow are found by their hosts, also across a block") {
  const resourced::test::TempDir dir;
  log::StoreWriter writer(path_in(dir.file("source")));
  constexpr Sequence last = 300;
  for (Sequence i = 1; i <= last; ++i)
    writer.commit({log::drain_record(i, 1, fmt::format("h{}", i % 7), "before")});
  const CopiedStore copy =
      log::copy_store(writer.database(), last, log::state_of(writer), dir.file("copy"), most_bytes);
  give(dir.file("target"), copy);
  log::install_store(dir.file("target"), last);
  log::StoreWriter installed(path_in(dir.file("target")));
  CHECK(installed.hosts().size() == 1);
  for (Sequence i = last + 1; i <= last + 400; ++i)
    installed.commit({log::drain_record(i, 1, fmt::format("h{}", i % 7), "after")});
  log::StoreReader reader(installed.database(), installed.hosts());
  log::EventFilter filter;
  filter.targets = log::targets_of("h5");
  const auto start = reader.start(filter, 1000);
  CHECK(start.first == last);
  CHECK(start.truncated == wall_time(100 + last - 1));
  std::size_t found = 0;
  for (Sequence next = start.first; next <= last + 400;) {
    const auto page = reader.page(filter, next, last + 400, 1000);
    REQUIRE_FALSE(page.failure);
    for (const auto& event : page.events) CHECK(event.sequence % 7 == 5);
    found += page.events.size();
    next = page.next;
  }
  CHECK(found == 57);
}

TEST_CASE("it is not made of an empty or damaged store, nor larger than wanted, and leaves nothing then") {
  Stand stand;
  const std::string state = stand.dir.file("state");
  const auto errnum = [&](std::size_t most) {
    const auto made = copy_of(stand, most);
    const auto* error = std::get_if<Error>(&made);
    return error == nullptr ? 0 : error->errnum();
  };
  CHECK(errnum(most_bytes) == 0);
  CHECK(errnum(10000) == EFBIG);
  log::Database(path_in(state)).execute("UPDATE event SET text = text || ' '");
  CHECK(errnum(most_bytes) == EBADMSG);
  CHECK_FALSE(fs::exists(log::copy_path(path_in(state))));
  const resourced::test::TempDir empty;
  log::StoreWriter writer(path_in(empty.path()));
  CHECK_THROWS_AS(
      static_cast<void>(log::copy_store(writer.database(), 0, {}, empty.file("copy"), most_bytes)), Error);
}

TEST_CASE("it takes the place of a store that a killed daemon has left, with nothing of that one") {
  Stand stand;
  const auto made = copy_of(stand);
  const auto& copy = std::get<CopiedStore>(made);
  const resourced::test::TempDir dir;
  leave_killed(dir.path(), 1);
  give(dir.path(), copy);
  log::install_store(dir.path(), copy.sequence);
  CHECK(is_alone(dir.path()));
  Store installed(dir.path());
  CHECK(installed.last_sequence() == copy.sequence);
  CHECK(installed.load().targets.drains.ranks().empty());
}

TEST_CASE("two that take one copy are two stores, so a lock file of one says nothing of the other") {
  Stand stand;
  const auto made = copy_of(stand);
  const auto& copy = std::get<CopiedStore>(made);
  const resourced::test::TempDir dir;
  for (int round = 0; round < 2; ++round) {
    give(dir.path(), copy);
    log::install_store(dir.path(), copy.sequence);
    log::StoreWriter installed(path_in(dir.path()));
    installed.commit({log::drain_record(copy.sequence + 1, 1, "h", "later")});
  }
}

TEST_CASE("one that is not whole, or of a newer version, changes nothing") {
  Stand stand;
  const auto made = copy_of(stand);
  const auto& copy = std::get<CopiedStore>(made);
  const resourced::test::TempDir dir;
  leave_killed(dir.path(), 2);
  give(dir.path(), copy);
  const std::string incoming = log::incoming_path(path_in(dir.path()));
  Sequence last = copy.sequence;
  std::string reason;
  SUBCASE("it was cut") {
    fs::resize_file(incoming, copy.bytes / 2);
    reason = "damaged";
  }
  SUBCASE("it is no store") {
    give(dir.path(), {});
    reason = "it has no tables";
  }
  SUBCASE("a row was changed") {
    log::Database(incoming).execute("UPDATE snapshot SET text = text || ' '");
    reason = "it does not match its checksum";
  }
  SUBCASE("it is from before 0.1.0") {
    log::Database(incoming).execute("PRAGMA application_id=0x52535243; PRAGMA user_version=10");
    reason = "a store of a resourced before 0.1.0";
  }
  SUBCASE("it is newer") {
    log::Database(incoming).execute("PRAGMA user_version=99");
    reason = "schema version 99 is not 1";
  }
  SUBCASE("it ends with another event") {
    ++last;
    reason = "it ends with event";
  }
  std::string why;
  try {
    log::install_store(dir.path(), last);
  } catch (const Error& error) {
    why = error.what();
  }
  CHECK(why.find(reason) != std::string::npos);
  CHECK(why.find(incoming) == 0);
  Store old(dir.path());
  CHECK(old.last_sequence() == 2);
  CHECK_FALSE(fs::exists(incoming));
}

TEST_CASE("whatever a crash has left beside a store is removed when it is opened") {
  const resourced::test::TempDir dir;
  leave_killed(dir.path(), 2);
  const std::string path = path_in(dir.path());
  dir.write("resourced.sqlite.new", "half of a store");
  dir.write("resourced.sqlite.copy", "half of a copy");
  CHECK(Store(dir.path()).last_sequence() == 2);
  CHECK_FALSE(fs::exists(log::copy_path(path)));
  CHECK_FALSE(fs::exists(log::incoming_path(path)));
}

TEST_SUITE_END();

}  // namespace resourced::daemon::test

// A store with truncated, flipped or overwritten files is refused and left unchanged, or gives the written
// state, or an answer of the journal is an error: it never gives another state.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/module/event.hpp"
#include "core/module/state.hpp"
#include "daemon/log/snapshot_rows.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_writer.hpp"
#include "os/sha256.hpp"
#include "proto/documents.hpp"
#include "proto/state_json.hpp"
#include "store_samples.hpp"
#include "temp_dir.hpp"
#include "thorough.hpp"

namespace resourced::daemon::log {
namespace {

constexpr Sequence events = 900;
constexpr unsigned hosts = 100;
constexpr std::size_t page_size = 4096;
const int variants_each = resourced::test::thorough(400, 80);

using Files = std::map<std::string, std::string>;

/// A log with all kinds of events, from which the beginning was trimmed. The events are those of a state.
class Events {
 public:
  Record next(std::mt19937& random) {
    ++sequence_;
    const auto rank = static_cast<text::IdSet::Id>(random() % hosts);
    const std::string host = fmt::format("host{}", rank);
    Record record = record_of(sequence_, body(rank, host, random), host);
    (void)module::apply(state_, event_);
    return record;
  }

  [[nodiscard]] Sequence last() const { return sequence_; }
  [[nodiscard]] const module::State& state() const { return state_; }

 private:
  module::EventBody body(text::IdSet::Id rank, const std::string& host, std::mt19937& random) {
    event_ = {wall_time(100 + static_cast<double>(sequence_)), choose(rank, host, random)};
    return event_.body;
  }

  module::EventBody choose(text::IdSet::Id rank, const std::string& host, std::mt19937& random) const {
    const text::Hostlist list = text::Hostlist::parse(host);
    if (!state_.defined) return definition_of(fmt::format("host[0-{}]", hosts - 1));
    const bool is_there = state_.inventory.ranks().contains(rank);
    switch (random() % 8) {
      case 0:
        if (!state_.targets.online.contains(rank)) return module::OnlineEvent{{rank}};
        return module::OfflineEvent{{rank}};
      case 1: {
        module::DefineEvent definition;
        definition.inventory = std::make_shared<const rset::ResourceSet>(state_.inventory);
        definition.configured = std::make_shared<const rset::ResourceSet>(state_.configured);
        return definition;
      }
      case 2: {
        if (is_there) return module::PropertyEvent{{{"fast", {rank}}}, {}, list};
        break;
      }
      case 3:
        if (state_.targets.drains.ranks().contains(rank)) return module::UndrainEvent{{rank}, list, {}};
        break;
      case 4:
        return module::ExpirationEvent{wall_time(static_cast<double>(10000 + sequence_))};
      case 5: {
        if (is_there && random() % 8 == 0) return module::ShrinkEvent{{rank}, list};
        break;
      }
      default:
        break;
    }
    return module::DrainEvent{
        {fmt::format("reason {}", random())}, {rank}, list, module::Overwrite::reason_and_timestamp};
  }

  Sequence sequence_ = 0;
  module::Event event_;
  module::State state_;
};

std::string loaded(StoreWriter& writer) {
  proto::Documents documents(os::sha256);
  return proto::encode_state(state_of(writer), documents) + fmt::format("last {}", writer.last_sequence());
}

/// The events that a reader gets for a filter, or the error that ended it.
std::string journal_of(StoreWriter& writer, const EventFilter& filter) {
  std::string text;
  try {
    StoreReader reader(writer.database(), writer.hosts());
    const HistoryStart start = reader.start(filter, 100000);
    text = fmt::format("after {}:", to_number(start.truncated.value_or(WallTime())));
    if (start.unknown_host) return "error";
    const Sequence last = writer.last_sequence();
    for (Sequence from = start.first; from <= last;) {
      const HistoryPage page = reader.page(filter, from, last, 100);
      if (page.has_gap) return "error";
      for (const LoggedEvent& event : page.events) {
        text += event.text;
        if (event.resources) text += *event.resources;
      }
      from = page.next;
    }
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("resourced.sqlite") != std::string::npos);
    return "error";
  }
  return text;
}

std::vector<EventFilter> filters() {
  std::vector<EventFilter> filters(5);
  filters[1].targets = targets_of("host7");
  filters[2].targets = targets_of("host8,host9", "host10");
  filters[3].since = wall_time(700);
  filters[4].since = wall_time(1);
  filters[4].targets = targets_of("host99");
  return filters;
}

std::vector<std::string> journals_of(StoreWriter& writer) {
  std::vector<std::string> journals;
  for (const EventFilter& filter : filters()) journals.push_back(journal_of(writer, filter));
  return journals;
}

Files read_files(const std::string& directory) {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    // SQLite recreates the index of the write-ahead log.
    if (name.ends_with("-shm")) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[name] = {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  return files;
}

void write_files(const std::string& directory, const Files& files) {
  for (const auto& [name, bytes] : files) {
    std::ofstream(std::filesystem::path(directory) / name, std::ios::binary) << bytes;
  }
}

/// Damages one file of a store, and describes how.
std::string damage(Files& files, std::mt19937& random) {
  auto file = files.begin();
  // Prefer the large files, which have most of the content.
  do {
    file = std::next(files.begin(), static_cast<std::ptrdiff_t>(random() % files.size()));
  } while (file->second.size() < page_size && random() % 8 != 0);
  std::string& bytes = file->second;
  const std::size_t place = random() % bytes.size();
  const std::size_t page = place - place % page_size;
  switch (random() % 7) {
    case 0:
      bytes.resize(random() % 4 == 0 ? 0 : place);
      return fmt::format("{} cut to {}", file->first, bytes.size());
    case 1:
      bytes.resize(page);
      return fmt::format("{} cut to {}", file->first, bytes.size());
    case 2: {
      const std::size_t size = std::min<std::size_t>(1 + random() % 300, bytes.size() - place);
      for (std::size_t i = place; i < place + size; ++i) bytes[i] = static_cast<char>(random());
      return fmt::format("{} overwritten at {} for {}", file->first, place, size);
    }
    case 3: {
      const std::size_t size = std::min(page_size, bytes.size() - page);
      bytes.replace(page, size, size, '\0');
      return fmt::format("{} zeroed at {}", file->first, page);
    }
    case 4: {
      const std::size_t from = random() % bytes.size() / page_size * page_size;
      const std::size_t size = std::min(page_size, bytes.size() - std::max(page, from));
      bytes.replace(page, size, std::string(bytes, from, size));
      return fmt::format("{} at {} replaced by its page at {}", file->first, page, from);
    }
    default:
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << random() % 8));
      return fmt::format("{} flipped at {}", file->first, place);
  }
}

struct Written {
  Files files;
  std::string state;
  std::vector<std::string> journals;
};

/// A store as a daemon leaves it that ends, or is killed.
Written write_store(bool is_killed) {
  const resourced::test::TempDir dir;
  std::mt19937 random(1);
  Written written;
  {
    StoreWriter writer(store_path(dir.path()));
    Events log;
    while (log.last() < events) {
      std::vector<Record> records;
      const Sequence end = std::min<Sequence>(log.last() + 1 + random() % 20, events);
      while (log.last() < end) records.push_back(log.next(random));
      writer.commit(records);
      const Sequence last = log.last();
      if (last / 200 > (last - records.size()) / 200)
        writer.write_past(SnapshotRow(last, log.state()), nullptr);
      if (last > 300) (void)writer.trim(wall_time(100 + 150), 1000, writer.last());
      // In a killed store, the database file has a part and the write-ahead log the rest.
      if (last > 450 && last < 470) writer.database().checkpoint();
    }
    written.state = loaded(writer);
    written.journals = journals_of(writer);
    if (is_killed) written.files = read_files(dir.path());
  }
  if (!is_killed) written.files = read_files(dir.path());
  return written;
}

struct Tally {
  int refused = 0;
  int with_errors = 0;
  int whole = 0;
};

void check_variant(const Written& written, const Files& files, Tally& tally) {
  const resourced::test::TempDir dir;
  write_files(dir.path(), files);
  try {
    StoreWriter writer(store_path(dir.path()));
    const std::string state = loaded(writer);
    CHECK((state == written.state));
    const std::vector<std::string> journals = journals_of(writer);
    bool is_whole = true;
    for (std::size_t i = 0; i < journals.size(); ++i) {
      CAPTURE(i);
      if (journals[i] == "error") {
        is_whole = false;
      } else {
        CHECK((journals[i] == written.journals[i]));
      }
    }
    ++(is_whole ? tally.whole : tally.with_errors);
  } catch (const Error& error) {
    const std::string text = error.what();
    CAPTURE(text);
    CHECK(text.find("resourced.sqlite") != std::string::npos);
    CHECK((text.find("backup") != std::string::npos || text.find("restore") != std::string::npos ||
           text.find("start the version") != std::string::npos || text.find("--state") != std::string::npos));
    CHECK((read_files(dir.path()) == files));
    ++tally.refused;
  }
}

TEST_CASE("a damaged store is refused untouched, or tells the truth, or an error") {
  for (const bool is_killed : {false, true}) {
    CAPTURE(is_killed);
    const Written written = write_store(is_killed);
    REQUIRE(written.files.contains("resourced.sqlite-wal") == is_killed);
    Tally tally;
    check_variant(written, written.files, tally);
    REQUIRE(tally.whole == 1);
    std::mt19937 random(2);
    for (int variant = 0; variant < variants_each; ++variant) {
      Files files = written.files;
      const std::string what = damage(files, random);
      CAPTURE(variant);
      CAPTURE(what);
      check_variant(written, files, tally);
    }
    MESSAGE(fmt::format("{}: {} refused, {} with an error for some readers, {} without a difference",
                        is_killed ? "killed" : "ended", tally.refused, tally.with_errors, tally.whole));
    CHECK(tally.refused > variants_each / 10);
    CHECK(tally.with_errors > variants_each / 20);
  }
}

TEST_CASE("a store without its write-ahead log, or with an older file, is refused until that is wanted") {
  Written written = write_store(true);
  SUBCASE("the log is gone") { written.files.erase("resourced.sqlite-wal"); }
  SUBCASE("the file is gone") { written.files.erase("resourced.sqlite"); }
  SUBCASE("the file is empty") { written.files["resourced.sqlite"].clear(); }
  SUBCASE("the file has one byte, which SQLite takes for none") {
    written.files["resourced.sqlite"].resize(1);
    SUBCASE("beside its lock file") {}
    SUBCASE("alone with the log") { written.files.erase("resourced.lock"); }
  }
  const resourced::test::TempDir dir;
  write_files(dir.path(), written.files);
  CHECK_THROWS_WITH_AS(StoreWriter{store_path(dir.path())}, doctest::Contains("resourced.sqlite"), Error);
  CHECK(read_files(dir.path()) == written.files);
}

TEST_CASE("a store that was all in its write-ahead log is not taken for a new one without it") {
  Files files;
  {
    const resourced::test::TempDir dir;
    StoreWriter writer(store_path(dir.path()));
    writer.commit({drain_record(1, 0, "a", "x")});
    files = read_files(dir.path());
  }
  files.erase("resourced.sqlite-wal");
  const resourced::test::TempDir dir;
  write_files(dir.path(), files);
  CHECK_THROWS_WITH_AS(StoreWriter{store_path(dir.path())}, doctest::Contains("all 1 events are missing"),
                       Error);
  CHECK(read_files(dir.path()) == files);
}

TEST_CASE("the way out of lost commits is to remove the lock file, and of all to move the files away") {
  Written written = write_store(true);
  written.files.erase("resourced.sqlite-wal");
  const resourced::test::TempDir dir;
  write_files(dir.path(), written.files);
  CHECK_THROWS_WITH_AS(StoreWriter{store_path(dir.path())}, doctest::Contains("are missing"), Error);
  std::filesystem::remove(dir.file("resourced.lock"));
  { CHECK(StoreWriter(store_path(dir.path())).last_sequence() < events); }
  const std::string path = store_path(dir.path());
  {
    StoreWriter writer(path);
    writer.commit({drain_record(writer.last_sequence() + 1, 0, "a", "x")});
  }
  std::filesystem::remove(path);
  CHECK_THROWS_WITH_AS(StoreWriter{path}, doctest::Contains("it is not there, and had "), Error);
  CHECK_THROWS_WITH_AS((void)peek_store(dir.path()), doctest::Contains("it is not there, and had "), Error);
  CHECK_FALSE(std::filesystem::exists(path));
  std::filesystem::remove(dir.file("resourced.lock"));
  CHECK(StoreWriter(path).last_sequence() == 0);
}

}  // namespace
}  // namespace resourced::daemon::log

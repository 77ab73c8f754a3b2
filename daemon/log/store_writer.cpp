#include "daemon/log/store_writer.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "core/error.hpp"
#include "daemon/log/store_locks.hpp"
#include "daemon/log/store_schema.hpp"
#include "os/log.hpp"

namespace resourced::daemon::log {
namespace {

// A checkpoint moves the write-ahead log into the file, as far as readers allow, after this many more pages.
constexpr std::size_t pages_between_checkpoints = 1000;
// From this many pages on, 16 MiB, a checkpoint waits for readers, and the next one comes sooner: a reader
// that begins at the wrong moment keeps the log from beginning anew.
constexpr std::size_t most_log_pages = 4096;
constexpr std::size_t pages_between_late_checkpoints = 100;
// From this many pages on, 64 MiB, some program that is not this daemon keeps the log from beginning anew.
constexpr std::size_t large_log_pages = 4 * most_log_pages;

Sequence last_event(Database& database) {
  Statement last(database, last_event_query);
  last.step();
  const auto sequence = static_cast<Sequence>(last.integer(0));
  last.reset();
  return sequence;
}

// A wait for a lock is logged after `silent_wait`, and again after each `between_lines`.
constexpr Seconds silent_wait{1};
constexpr Seconds between_lines{60};
// How long a start waits for a lock, and a daemon that ends.
constexpr Seconds shortest_patience{3};

/// Logs which process has the lock, after `silent_wait` and each minute.
class LockLine {
 public:
  explicit LockLine(std::string path) : path_(std::move(path)) {}
  void say(Seconds waited) {
    if (waited < told_) told_ = Seconds(0);
    if (waited < silent_wait || (told_ > Seconds(0) && waited - told_ < between_lines)) return;
    told_ = waited;
    os::log_warning("{}: {} has locked it: changes wait until it ends its transaction, {:.0f} s so far",
                    path_, user_of_store(path_, StoreUse::writes), waited.count());
  }

 private:
  std::string path_;
  Seconds told_{0};
};

std::uintmax_t size_of(const std::string& path) {
  std::error_code missing;
  const std::uintmax_t size = std::filesystem::file_size(path, missing);
  return missing ? 0 : size;
}

std::string log_path(const std::string& path) { return path + "-wal"; }
std::string index_path(const std::string& path) { return path + "-shm"; }

// The largest file that SQLite takes for an empty one: earlier versions of it wrote one byte.
constexpr std::uintmax_t most_empty_bytes = 1;

// Refuses an empty file that was a store: SQLite takes it for a new database, and removes the log that it
// finds beside it.
void check_files(const std::string& path, const StateLock& lock) {
  if (size_of(path) > most_empty_bytes) return;
  if (size_of(log_path(path)) > 0) throw damaged_store(path, "it is empty, and its write-ahead log is not");
  if (lock.head() && std::filesystem::exists(path))
    throw damaged_store(path, "it is empty, and had events before");
  check_not_lost(path);
}

}  // namespace

StoreWriter::Traces::Traces(const std::string& path)
    : path_(path),
      had_log_(std::filesystem::exists(log_path(path))),
      had_index_(std::filesystem::exists(index_path(path))) {}

StoreWriter::Traces::~Traces() {
  if (kept_) return;
  std::error_code ignored;
  if (!had_index_) std::filesystem::remove(index_path(path_), ignored);
  if (!had_log_ && size_of(log_path(path_)) == 0) std::filesystem::remove(log_path(path_), ignored);
}

// With synchronous=FULL, a commit that returned is on disk (one fdatasync of the write-ahead log).
StoreWriter::Opened::Opened(const std::string& path, const StateLock& lock, Traces& traces)
    : Database((check_files(path, lock), path)) {
  // Until the store is checked, nothing is moved between the files and nothing removed.
  set_tidy_on_close(false);
  try {
    wait_for_locks([line = LockLine(path)](Seconds waited) mutable {
      line.say(waited);
      return waited < shortest_patience;
    });
    check(lock);
    execute(
        "PRAGMA journal_mode=WAL;"
        "PRAGMA synchronous=FULL;"
        "BEGIN IMMEDIATE; COMMIT;");
    count_log_pages();
    prepare_schema(*this);
    // The caller may still refuse to start. A log that existed before stays until the first commit; one that
    // this connection has begun is removed when it closes.
    set_tidy_on_close(!traces.had_log());
  } catch (const Error& error) {
    if (error.errnum() != EBUSY) throw;
    traces.keep();
    throw Error(EBUSY, fmt::format("{}: {} has locked it; end that, or give this daemon another --state",
                                   path, user_of_store(path, StoreUse::writes)));
  }
}

void StoreWriter::Opened::check(const StateLock& lock) {
  // Until the first checkpoint, all of a store is in its write-ahead log, and without that the file holds
  // nothing.
  const bool held_something = size_of(path()) > 0;
  check_schema(*this);
  const auto& head = lock.head();
  if (head && held_something && is_empty(*this)) {
    throw lost_commits(fmt::format("all {} events are", head->sequence),
                       "move the directory away to begin with an empty store");
  }
  if (!head || is_empty(*this)) return;
  const Sequence last = last_event(*this);
  if (store_number(*this) != head->store || head->sequence <= last) return;
  throw lost_commits(fmt::format("the last {} events are", head->sequence - last),
                     fmt::format("go on without them with --recover-to {}", last));
}

Error StoreWriter::Opened::lost_commits(const std::string& what, const std::string& other_way) const {
  return {EBADMSG,
          fmt::format("{0}: {1} missing, which were recorded ({0}-wal was removed or damaged, or this is an "
                      "older copy); restore both, or {2}",
                      path(), what, other_way)};
}

StoreWriter::StoreWriter(const std::string& path)
    : lock_(path),
      traces_(path),
      database_(path, lock_, traces_),
      last_sequence_(database_, last_event_query),
      last_((load_hosts(database_, hosts_), last_sequence())),
      events_(database_, hosts_, last_),
      snapshots_(database_),
      usage_(database_),
      file_(identify(path)),
      log_file_(identify(log_path(path))),
      large_log_(large_log_pages),
      begin_(database_, "BEGIN IMMEDIATE"),
      commit_(database_, "COMMIT"),
      trim_find_(database_,
                 "SELECT sequence, timestamp FROM event WHERE sequence < ? ORDER BY sequence LIMIT ?"),
      trim_events_(database_, "DELETE FROM event WHERE sequence <= ?"),
      trim_blocks_(database_, "DELETE FROM event_block WHERE block < ?"),
      put_trimmed_(database_,
                   "INSERT OR REPLACE INTO trimmed(id, sequence, timestamp, sum) VALUES (1, ?, ?, ?)") {
  store_id_ = store_number(database_);
  wait_for_others();
}

void StoreWriter::wait_for_others() {
  database_.wait_for_locks([this, line = LockLine(database_.path()),
                            ending = Seconds(0)](Seconds waited) mutable {
    line.say(waited);
    if (!ends_) {
      ending = waited;
      return true;
    }
    // `waited` begins at 0 with each wait, and `ending` with it.
    ending = std::min(ending, waited);
    if (waited - ending < shortest_patience) return true;
    os::log_error("{}: {} still has it locked: the last changes, which were not answered, are not recorded",
                  database_.path(), user_of_store(database_.path(), StoreUse::writes));
    return false;
  });
}

std::uint64_t StoreWriter::log_bytes() const noexcept { return size_of(log_path(database_.path())); }

// Logs a reader of another process that does not end. Readers of this process are waited for, so it is none
// of them.
void StoreWriter::watch_log(std::size_t pages) {
  if (pages < large_log_) return;
  large_log_ = 2 * pages;
  os::log_warning(
      "{}-wal has {} MiB and grows, because {} keeps a read transaction of the store open: end that program",
      database_.path(), log_bytes() >> 20U, user_of_store(database_.path(), StoreUse::reads));
}

// The last connection removes the write-ahead log by its name, which may be that of another store's log by
// now.
StoreWriter::~StoreWriter() {
  if (is_in_place()) return;
  database_.set_tidy_on_close(false);
  traces_.keep();
}

StoreWriter::Identity StoreWriter::identify(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

bool StoreWriter::is_in_place() const {
  const std::string& path = database_.path();
  return identify(path) == file_ && identify(log_path(path)) == log_file_;
}

Sequence StoreWriter::last_sequence() {
  last_sequence_.step();
  const auto last = static_cast<Sequence>(last_sequence_.integer(0));
  last_sequence_.reset();
  return last;
}

void StoreWriter::commit(const std::vector<Record>& records, const StoreBase& base) {
  const Sequence last = records.empty() ? base.sequence : records.back().sequence;
  transaction([&] {
    if (base.state) {
      put_trimmed(base.sequence, base.timestamp);
      snapshots_.write(SnapshotRow(base.sequence, *base.state));
    }
    for (const Record& record : records) write(record);
  });
  last_ = last;
  if (!is_in_place()) {
    throw Error(ESTALE, fmt::format("{}: removed or replaced while in use; put it back, and start again",
                                    database_.path()));
  }
  lock_.write({store_id_, last_});
}

void StoreWriter::write_past(const SnapshotRow& snapshot, const RollUp* usage) {
  transaction([&] {
    if (usage != nullptr) usage_.write(*usage);
    snapshots_.write(snapshot);
  });
}

void StoreWriter::checkpoint(const std::function<void(const std::function<void()>&)>& without_readers) {
  const std::size_t pages = database_.log_pages();
  // A commit has begun the log anew since the last checkpoint.
  if (pages < log_pages_) {
    log_pages_ = 0;
    large_log_ = large_log_pages;
  }
  const std::size_t between =
      pages < most_log_pages ? pages_between_checkpoints : pages_between_late_checkpoints;
  if (pages - log_pages_ < between) return;
  log_pages_ = pages;
  if (database_.checkpoint() || pages < most_log_pages) return;
  bool is_moved = false;
  without_readers([&] { is_moved = database_.checkpoint(); });
  if (!is_moved) watch_log(pages);
}

template <class Work>
void StoreWriter::transaction(Work work) {
  begin_.run();
  try {
    work();
    commit_.run();
    if (!traces_.kept()) {
      traces_.keep();
      database_.set_tidy_on_close(true);
    }
  } catch (...) {
    // ROLLBACK fails if a full disk has rolled back already; there is nothing more to undo then.
    try {
      database_.execute("ROLLBACK");
    } catch (const Error&) {
    }
    throw;
  }
}

std::size_t StoreWriter::trim(WallTime before, std::size_t most, Sequence last) {
  std::size_t count = 0;
  std::int64_t sequence = 0;
  WallTime timestamp;
  trim_find_.bind(1, static_cast<std::int64_t>(std::min(last_, last + 1)))
      .bind(2, static_cast<std::int64_t>(most));
  while (trim_find_.step() && trim_find_.time(1) < before) {
    ++count;
    sequence = trim_find_.integer(0);
    timestamp = trim_find_.time(1);
  }
  trim_find_.reset();
  if (count == 0) return 0;
  transaction([&] {
    trim_events_.bind(1, sequence).run();
    trim_blocks_.bind(1, (sequence + 1) / static_cast<std::int64_t>(block_size)).run();
    snapshots_.trim(static_cast<Sequence>(sequence));
    put_trimmed(static_cast<Sequence>(sequence), timestamp);
  });
  return count;
}

void StoreWriter::put_trimmed(Sequence sequence, WallTime timestamp) {
  put_trimmed_.bind(1, static_cast<std::int64_t>(sequence))
      .bind(2, timestamp)
      .bind(3, trimmed_sum(sequence, timestamp))
      .run();
}

void StoreWriter::write(const Record& record) {
  events_.write(record);
  if (record.snapshot) snapshots_.write(SnapshotRow(record.sequence, *record.snapshot));
}

}  // namespace resourced::daemon::log

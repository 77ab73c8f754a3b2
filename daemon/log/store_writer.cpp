#include "daemon/log/store_writer.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "core/error.hpp"
#include "daemon/log/load_state.hpp"
#include "daemon/log/store_schema.hpp"
#include "proto/actor_json.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon::log {
namespace {

// The write-ahead log is moved into the file, as far as readers allow, after this many more pages.
constexpr std::size_t pages_between_checkpoints = 1000;
// With this many pages, 16 MiB, readers are waited for, and the next attempt comes sooner: a reader that
// begins at the wrong moment keeps the log from beginning anew.
constexpr std::size_t most_log_pages = 4096;
constexpr std::size_t pages_between_late_checkpoints = 100;

std::uintmax_t size_of(const std::string& path) {
  std::error_code missing;
  const std::uintmax_t size = std::filesystem::file_size(path, missing);
  return missing ? 0 : size;
}

std::string log_path(const std::string& path) { return path + "-wal"; }
std::string index_path(const std::string& path) { return path + "-shm"; }

// SQLite takes a file of up to one byte for an empty one, as earlier versions wrote one byte.
constexpr std::uintmax_t most_empty_bytes = 1;

// SQLite takes an empty file for a new database, and removes the log that it finds beside it.
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

// FULL: a commit that returned is on disk (one fdatasync of the write-ahead log). A daemon of schema 1 or 2
// holds the file itself instead of the lock file; it is waited for too.
StoreWriter::Opened::Opened(const std::string& path, const StateLock& lock, Traces& traces)
    : Database((check_files(path, lock), path)) {
  // Until all is checked, nothing is moved between the files and nothing removed.
  set_tidy_on_close(false);
  try {
    execute("PRAGMA busy_timeout=2000;");
    check(lock);
    execute(
        "PRAGMA journal_mode=WAL;"
        "PRAGMA synchronous=FULL;"
        "BEGIN IMMEDIATE; COMMIT;");
    count_log_pages();
    prepare_schema(*this);
    // The caller may still refuse to start. A log that was there stays until the first commit; one that this
    // connection has begun is removed when it closes.
    set_tidy_on_close(!traces.had_log());
  } catch (const Error& error) {
    if (error.errnum() != EBUSY) throw;
    traces.keep();
    throw Error(
        EBUSY,
        fmt::format("{}: in use by another resourced; stop it, or give this one another --state", path));
  }
}

void StoreWriter::Opened::check(const StateLock& lock) {
  // Until the first checkpoint all of a store is in its write-ahead log: without it, the file holds nothing.
  const bool held_something = size_of(path()) > 0;
  check_schema(*this);
  const auto& head = lock.head();
  if (head && held_something && is_empty(*this)) {
    throw lost_commits(fmt::format("all {} events are", head->sequence), lock);
  }
  if (!has_present_sum(*this)) return;
  PresentSum(*this).verify();
  if (!head) return;
  Statement present(*this, "SELECT store, sequence FROM present");
  present.step();
  const auto last = static_cast<Sequence>(present.integer(1));
  if (present.integer(0) != head->store || head->sequence <= last) return;
  throw lost_commits(fmt::format("the last {} events are", head->sequence - last), lock);
}

Error StoreWriter::Opened::lost_commits(const std::string& what, const StateLock& lock) const {
  return {EBADMSG,
          fmt::format("{0}: {1} missing, which were recorded ({0}-wal was removed or damaged, or this is an "
                      "older copy); restore both, or remove {2} to go on without them",
                      path(), what, lock.path())};
}

StoreWriter::DrainStatements::DrainStatements(Database& database, const std::string& table)
    : put(database, fmt::format("INSERT OR REPLACE INTO {}(host, ordinal, timestamp, reason, actor, until) "
                                "VALUES (?, ?, ?, ?, ?, ?)",
                                table)
                        .c_str()),
      take(database, fmt::format("DELETE FROM {} WHERE host = ? AND ordinal = ?", table).c_str()),
      forget(database, fmt::format("DELETE FROM {}", table).c_str()) {}

StoreWriter::StoreWriter(const std::string& path)
    : lock_(path),
      traces_(path),
      database_(path, lock_, traces_),
      present_(database_),
      last_sequence_(database_, "SELECT coalesce(max(sequence), 0) FROM event"),
      last_((load_hosts(database_, hosts_), last_sequence())),
      events_(database_, hosts_, last_),
      snapshots_(database_),
      usage_(database_),
      file_(identify(path)),
      log_file_(identify(log_path(path))),
      trim_find_(database_,
                 "SELECT sequence, timestamp FROM event WHERE sequence < ? ORDER BY sequence LIMIT ?"),
      trim_events_(database_, "DELETE FROM event WHERE sequence <= ?"),
      trim_blocks_(database_, "DELETE FROM event_block WHERE block < ?"),
      trim_resources_(
          database_,
          "DELETE FROM resource_set WHERE last <= ? AND id NOT IN (SELECT resources FROM snapshot)"),
      put_trimmed_(database_, "INSERT OR REPLACE INTO trimmed(id, sequence, timestamp) VALUES (1, ?, ?)"),
      drains_(database_, "drain"),
      scheduled_(database_, "scheduled_drain"),
      put_property_(database_,
                    "INSERT OR REPLACE INTO property(name, host, ordinal, present) VALUES (?, ?, ?, ?)"),
      take_property_(database_, "DELETE FROM property WHERE name = ? AND host = ? AND ordinal = ?"),
      take_properties_(database_, "DELETE FROM property WHERE host = ? AND ordinal = ?"),
      forget_properties_(database_, "DELETE FROM property"),
      put_shrunk_(database_, "INSERT OR IGNORE INTO shrunk(host, ordinal) VALUES (?, ?)"),
      take_shrunk_(database_, "DELETE FROM shrunk WHERE host = ? AND ordinal = ?"),
      forget_shrunk_(database_, "DELETE FROM shrunk"),
      forget_loaded_(database_, "DELETE FROM inventory WHERE method = 'reload'"),
      put_expiration_(
          database_,
          "INSERT OR REPLACE INTO expiration(id, value, configured, timestamp) VALUES (1, ?, ?, ?)"),
      put_inventory_(database_,
                     "INSERT OR REPLACE INTO inventory(id, method, text, replaced) VALUES (1, ?, ?, ?)"),
      put_brokers_(database_, "INSERT OR REPLACE INTO broker(id, hosts) VALUES (1, ?)"),
      put_allocation_(database_,
                      "INSERT OR REPLACE INTO allocation(id, resources, ordinals, expiration, note, part) "
                      "VALUES (?, ?, ?, ?, ?, ?)"),
      take_allocation_(database_, "DELETE FROM allocation WHERE id = ?"),
      forget_allocations_(database_, "DELETE FROM allocation") {
  present_.watch();
  Statement store(database_, "SELECT store FROM present");
  store.step();
  store_id_ = store.integer(0);
  store.reset();
}

// The last connection removes the write-ahead log by its name, which may be another store's by now.
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

module::RecordedState StoreWriter::load() { return load_state(database_); }

void StoreWriter::commit(const std::vector<Record>& records) {
  const Sequence last = records.back().sequence;
  transaction([&] {
    for (const Record& record : records) write(record);
    present_.store(last);
  });
  last_ = last;
  if (!is_in_place()) {
    throw Error(ESTALE, fmt::format("{}: removed or replaced while in use; put it back, and start again",
                                    database_.path()));
  }
  lock_.write({store_id_, last_});
}

bool StoreWriter::write_past(const SnapshotRow& snapshot, const RollUp* usage) {
  bool is_written = true;
  transaction([&] {
    is_written = usage == nullptr || usage_.write(*usage);
    if (is_written) snapshots_.write(snapshot);
  });
  return is_written;
}

void StoreWriter::checkpoint(const std::function<void(const std::function<void()>&)>& without_readers) {
  const std::size_t pages = database_.log_pages();
  // A commit has begun the log anew.
  if (pages < log_pages_) log_pages_ = 0;
  const std::size_t between =
      pages < most_log_pages ? pages_between_checkpoints : pages_between_late_checkpoints;
  if (pages - log_pages_ < between) return;
  log_pages_ = pages;
  if (database_.checkpoint() || pages < most_log_pages) return;
  without_readers([this] { database_.checkpoint(); });
}

template <class Work>
void StoreWriter::transaction(Work work) {
  database_.execute("BEGIN IMMEDIATE");
  try {
    work();
    database_.execute("COMMIT");
    present_.keep();
    if (!traces_.kept()) {
      traces_.keep();
      database_.set_tidy_on_close(true);
    }
  } catch (...) {
    present_.revert();
    // A full disk may have rolled it back already; there is nothing more to undo then.
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
    trim_resources_.bind(1, sequence).run();
    put_trimmed_.bind(1, sequence).bind(2, timestamp).run();
    present_.store(last_);
  });
  return count;
}

void StoreWriter::write(const Record& record) {
  events_.write({record.sequence, record.timestamp, record.hidden ? hidden_name : record.name, record.text,
                 &record.hosts, record.resources.get(), false, record.of_ledger});
  if (record.snapshot) snapshots_.write(SnapshotRow(record.sequence, *record.snapshot));
  write_drains(record);
  write_properties(record);
  write_allocations(record);
  if (record.changes.forget_shrunk) forget_shrunk_.run();
  record.changes.shrunk.for_each([&](std::string_view host, std::uint32_t ordinal) {
    put_shrunk_.bind(1, host).bind(2, std::int64_t{ordinal}).run();
    take_properties_.bind(1, host).bind(2, std::int64_t{ordinal}).run();
  });
  record.changes.unshrunk.for_each([&](std::string_view host, std::uint32_t ordinal) {
    take_shrunk_.bind(1, host).bind(2, std::int64_t{ordinal}).run();
  });
  if (record.changes.forget_loaded) forget_loaded_.run();
  if (record.changes.inventory) {
    put_inventory_.bind(1, proto::method_name(record.changes.inventory->method))
        .bind(2, std::string_view(record.changes.inventory->text))
        .bind(3, record.changes.inventory->replaced)
        .run();
  }
  if (record.changes.brokers) {
    const std::string hosts = record.changes.brokers->encode();
    put_brokers_.bind(1, std::string_view(hosts)).run();
  }
  if (record.changes.expiration) {
    put_expiration_.bind(1, record.changes.expiration->value)
        .bind(2, record.changes.expiration->configured)
        .bind(3, record.changes.expiration->timestamp)
        .run();
  }
}

void StoreWriter::write_drains(const Record& record) {
  const auto write = [](DrainStatements& table, bool forget, const module::TargetNames& gone,
                        const std::vector<TableChanges::Drained>& changed) {
    if (forget) table.forget.run();
    gone.for_each([&](std::string_view host, std::uint32_t ordinal) {
      table.take.bind(1, host).bind(2, std::int64_t{ordinal}).run();
    });
    for (const TableChanges::Drained& drain : changed) {
      std::optional<std::string> actor;
      if (drain.by) actor = proto::encode_actor(*drain.by);
      drain.targets.for_each([&](std::string_view host, std::uint32_t ordinal) {
        table.put.bind(1, host)
            .bind(2, std::int64_t{ordinal})
            .bind(3, drain.timestamp)
            .bind(4, drain.reason)
            .bind(5, actor)
            .bind(6, drain.until)
            .run();
      });
    }
  };
  const TableChanges& changes = record.changes;
  write(drains_, changes.forget_drains, changes.undrained, changes.drained);
  write(scheduled_, changes.forget_scheduled, changes.unscheduled, changes.scheduled);
}

void StoreWriter::write_allocations(const Record& record) {
  if (record.changes.forget_allocations) forget_allocations_.run();
  for (const std::string& id : record.changes.freed) take_allocation_.bind(1, std::string_view(id)).run();
  for (const TableChanges::Allocated& allocation : record.changes.allocated) {
    std::optional<std::string> ordinals;
    if (!allocation.ordinals.empty()) ordinals = fmt::format("{}", fmt::join(allocation.ordinals, ","));
    put_allocation_.bind(1, std::string_view(allocation.id))
        .bind(2, std::string_view(*allocation.resources))
        .bind(3, ordinals)
        .bind(5, allocation.note)
        .bind(4, allocation.expiration)
        .bind(6, std::string_view(allocation.partition))
        .run();
  }
}

void StoreWriter::write_properties(const Record& record) {
  using Difference = module::PropertyState::Difference;
  if (record.changes.forget_properties) forget_properties_.run();
  for (const TableChanges::Property& property : record.changes.properties) {
    property.targets.for_each([&](std::string_view host, std::uint32_t ordinal) {
      Statement& statement = property.difference == Difference::same ? take_property_ : put_property_;
      statement.bind(1, std::string_view(property.name)).bind(2, host).bind(3, std::int64_t{ordinal});
      if (property.difference != Difference::same) {
        statement.bind(4, std::int64_t{property.difference == Difference::added});
      }
      statement.run();
    });
  }
}

}  // namespace resourced::daemon::log

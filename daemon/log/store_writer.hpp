// Writes to the store: records, snapshots, roll-ups, trims and checkpoints.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <sys/types.h>

#include "core/time.hpp"
#include "daemon/log/event_rows.hpp"
#include "daemon/log/host_ids.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/snapshot_rows.hpp"
#include "daemon/log/sqlite.hpp"
#include "daemon/log/state_lock.hpp"
#include "daemon/log/usage_rows.hpp"

namespace resourced::daemon::log {

class StoreWriter {
 public:
  /// Opens the database file, locks its directory against another daemon for its lifetime, and checks its
  /// tables. Throws Error that names the file if it is damaged or has lost commits, and leaves it unchanged.
  /// An existing store is not changed until the first commit, so a start that is refused after this changes
  /// none of its files. Waits for a lock of another program, as commit() does, but for some seconds only:
  /// then throws Error EBUSY that names it.
  explicit StoreWriter(const std::string& path);
  ~StoreWriter();
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;
  StoreWriter(StoreWriter&&) = delete;
  StoreWriter& operator=(StoreWriter&&) = delete;

  [[nodiscard]] Sequence last_sequence();
  /// The last event that was committed.
  [[nodiscard]] Sequence last() const noexcept { return last_; }

  /// Writes records as one transaction, which is on disk when this returns. Waits for a lock of another
  /// program as for a slow disk, until end_soon(), and logs which program has it. After an Error the object
  /// must not be used any more. Throws Error ESTALE if the files were removed or replaced.
  /// `base` is the beginning of an empty store that lacks the events before.
  void commit(const std::vector<Record>& records, const StoreBase& base = {});

  /// Writes a snapshot of a state that the log leads to and, unless it is null, an extension of the roll-ups,
  /// in one transaction. The object stays usable after an Error ENOSPC.
  void write_past(const SnapshotRow& snapshot, const RollUp* usage);

  /// Moves the write-ahead log into the file when it has grown. Waits for readers, by `without_readers`, only
  /// when the log has become large, as it would otherwise grow without a bound.
  void checkpoint(const std::function<void(const std::function<void()>&)>& without_readers);

  /// Drops the oldest events that are older than `before` and not after `last`, at most `most` of them. The
  /// newest event is kept. Returns how many it dropped.
  std::size_t trim(WallTime before, std::size_t most, Sequence last = all_events);
  static constexpr Sequence all_events = std::numeric_limits<std::int64_t>::max();

  /// Bounds waits for a lock to some seconds from now on. May be called on another thread.
  void end_soon() noexcept { ends_ = true; }

  /// The bytes of the write-ahead log on disk. May be called on another thread.
  [[nodiscard]] std::uint64_t log_bytes() const noexcept;

  [[nodiscard]] Database& database() noexcept { return database_; }
  [[nodiscard]] const HostIds& hosts() const noexcept { return hosts_; }
  [[nodiscard]] const StateLock& lock() const noexcept { return lock_; }

 private:
  // The files that opening the database makes beside it. The destructor removes them if the start was
  // refused, after the connection is closed.
  class Traces {
   public:
    explicit Traces(const std::string& path);
    ~Traces();
    Traces(const Traces&) = delete;
    Traces& operator=(const Traces&) = delete;
    Traces(Traces&&) = delete;
    Traces& operator=(Traces&&) = delete;

    /// Leaves the files in place: another process uses them too, or the store has been written to.
    void keep() noexcept { kept_ = true; }
    [[nodiscard]] bool kept() const noexcept { return kept_; }
    [[nodiscard]] bool had_log() const noexcept { return had_log_; }

   private:
    std::string path_;
    bool had_log_;
    bool had_index_;
    bool kept_ = false;
  };

  // A member of its own, as pragmas and schema must be in place before statements are prepared.
  struct Opened : Database {
    Opened(const std::string& path, const StateLock& lock, Traces& traces);
    void check(const StateLock& lock);
    [[nodiscard]] Error lost_commits(const std::string& what, const std::string& other_way) const;
  };

  // Identifies a file independently of its name.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  [[nodiscard]] static Identity identify(const std::string& path);
  [[nodiscard]] bool is_in_place() const;

  template <class Work>
  void transaction(Work work);
  void write(const Record& record);
  void put_trimmed(Sequence sequence, WallTime timestamp);

  void wait_for_others();
  void watch_log(std::size_t pages);

  StateLock lock_;
  Traces traces_;
  Opened database_;
  HostIds hosts_;
  std::int64_t store_id_ = 0;
  Statement last_sequence_;
  Sequence last_ = 0;
  EventRows events_;
  SnapshotRows snapshots_;
  UsageRows usage_;
  Identity file_;
  Identity log_file_;
  /// Pages of the write-ahead log at the last checkpoint.
  std::size_t log_pages_ = 0;
  /// A write-ahead log of so many pages is logged as too large.
  std::size_t large_log_;
  std::atomic<bool> ends_ = false;
  Statement begin_;
  Statement commit_;
  Statement trim_find_;
  Statement trim_events_;
  Statement trim_blocks_;
  Statement put_trimmed_;
};

}  // namespace resourced::daemon::log

// The lock file of a state directory. It keeps a second daemon out. The sequence of the last commit is
// written to it after each commit, so that a store that has lost commits is detected. A second line has the
// time at which a daemon last watched node agents. Neither write is synced, as after a loss of power an older
// sequence or time does no harm. A start that is refused before its first
// commit leaves the file as it was, and removes a file that it has made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.hpp"
#include "daemon/log/records.hpp"

namespace resourced::daemon::log {

/// The name of the lock file in a state directory.
inline constexpr const char* lock_file = "resourced.lock";

/// Throws Error EINVAL that names the first of a store's files (its own, those that SQLite keeps beside it,
/// the lock file) that exists and is not a regular file: to open a FIFO would wait for its other end. Throws
/// ENOTDIR if the state directory is not a directory.
void check_store_files(const std::string& store_path);

/// Throws Error EBADMSG with the way out if the file of a store is missing although its lock file names a
/// commit to it: an empty store in its place would put drained nodes back into service.
void check_not_lost(const std::string& store_path);

class StateLock {
 public:
  /// The last sequence that was committed to a store, with the number of the store (table `store`).
  struct Head {
    std::int64_t store = 0;
    Sequence sequence = 0;
  };

  /// Locks the state directory, which must exist, by the path of its store. Waits for a daemon that is
  /// ending, for two seconds at the most; then throws Error EBUSY that names the store.
  explicit StateLock(const std::string& store_path);
  ~StateLock();
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;
  StateLock(StateLock&&) = delete;
  StateLock& operator=(StateLock&&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// The last commit that the file named when it was locked; unset for a new or unreadable file.
  [[nodiscard]] const std::optional<Head>& head() const noexcept { return head_; }

  /// Writes the last commit. A failure is ignored: the file then names an earlier commit, so fewer losses are
  /// found.
  void write(const Head& head) noexcept;

  /// When a daemon last watched node agents, in whole seconds, as the file had it when it was locked.
  [[nodiscard]] const std::optional<WallTime>& watched() const noexcept { return watched_; }
  /// Writes the time that watched() reads. A failure is ignored: nodes are then offline at first after the
  /// next start.
  void write_watched(WallTime now) const noexcept;

 private:
  bool try_lock();

  std::string path_;
  int descriptor_ = -1;
  bool is_new_ = false;
  std::optional<Head> head_;
  std::optional<WallTime> watched_;
};

}  // namespace resourced::daemon::log

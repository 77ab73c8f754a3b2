// The durable side of the daemon: the event log and the tables of the present in one SQLite file, written by
// a thread of its own. Records are queued; what waits while one commit runs goes into the next, so one fsync
// serves many. What the tables mean is the module's business (RecordedState).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/module/command.hpp"
#include "daemon/record.hpp"

namespace resourced::daemon {

class StoreWriter;

class Store {
 public:
  /// Told by the store's thread. `committed` says that this event and all before it are on disk. After
  /// `failed` nothing more is committed.
  struct Callbacks {
    std::function<void(Sequence)> committed;
    std::function<void(const Error&)> failed;
  };

  /// Opens the store of a state directory, which is made if it is not there, and locks it against a second
  /// daemon. Throws Error that names the file and says what to do.
  explicit Store(const std::string& directory);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  Store(Store&&) = delete;
  Store& operator=(Store&&) = delete;

  /// What was recorded before; to be read before start().
  [[nodiscard]] RecordedState load();
  /// The last event on disk, 0 in a new store.
  [[nodiscard]] Sequence last_sequence() const noexcept { return last_sequence_; }

  void start(Callbacks callbacks);

  /// Queues a record. Sequences come in order without gaps.
  void append(Record record);

  /// Commits what is queued and ends the thread.
  void stop();

  struct Counters {
    std::uint64_t commits = 0;
    std::uint64_t events = 0;
  };
  [[nodiscard]] Counters counters() const;

 private:
  void work();
  bool commit(std::vector<Record>& batch);

  std::unique_ptr<StoreWriter> writer_;
  Sequence last_sequence_ = 0;
  Callbacks callbacks_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Record> queue_;
  Counters counters_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace resourced::daemon

// The durable side of the daemon: the event log and the tables of the present in one SQLite file. One thread
// writes: records are queued, and those that wait while one commit runs go into the next, so one fsync serves
// many. Another thread reads history over a connection of its own, so commits wait for no reader. The module
// decides what the tables mean (RecordedState).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/module/command.hpp"
#include "core/time.hpp"
#include "daemon/store/event_log.hpp"
#include "daemon/store/records.hpp"

namespace resourced::daemon::store {

class Database;
class StoreReader;
class StoreWriter;

/// Its name in a state directory.
inline constexpr const char* store_file = "resourced.sqlite";

/// The file of a state directory, which is made if it is not there. Throws Error that names it.
[[nodiscard]] std::string store_path(const std::string& directory);

class Store final : public EventLog {
 public:
  /// The store's threads call `post`, which runs a function on the loop; the other callbacks are called
  /// there.
  struct Callbacks {
    std::function<void(std::function<void()>)> post;
    /// This event and all before it are on disk.
    std::function<void(Sequence)> committed;
    /// Nothing more is committed from here on.
    std::function<void(const Error&)> failed;
    /// The history cannot be trimmed, as it is damaged; everything else works.
    std::function<void(const Error&)> not_trimmed = [](const Error& /*error*/) {};
  };

  /// Opens the store of a state directory, which is made if it is not there, and locks it against a second
  /// daemon. Throws Error that names the file and says what to do.
  explicit Store(const std::string& directory);
  ~Store() override;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  Store(Store&&) = delete;
  Store& operator=(Store&&) = delete;

  /// The recorded state. To be called before start().
  [[nodiscard]] module::RecordedState load();
  [[nodiscard]] Sequence last_sequence() const noexcept override { return last_sequence_; }
  [[nodiscard]] WallTime last_timestamp() const noexcept override { return last_timestamp_; }
  /// The error of the last event if it cannot be read. Journals end there; everything else works.
  [[nodiscard]] const std::optional<Error>& damage() const noexcept { return damage_; }

  void start(Callbacks callbacks);

  void append(Record record) override;
  void find_targets(std::shared_ptr<NamedTargets> targets, std::function<void()> answer) override;
  void find_start(const EventFilter& filter, std::size_t most,
                  std::function<void(HistoryStart)> answer) override;
  void read_page(const EventFilter& filter, Sequence from, Sequence to, std::size_t limit,
                 std::function<void(HistoryPage)> answer) override;

  /// Hides events before this time from consumers that begin from now on, and drops, in steps, those before
  /// the time of the previous call: a consumer that has begun has the time between two calls to read them. 0
  /// keeps all.
  void trim(WallTime before);

  /// Commits the queued records and ends the threads. Waiting questions get no answer.
  void stop();

  [[nodiscard]] Counters counters() const override;

 private:
  using Question = std::function<void()>;

  void work();
  // One turn of the writing thread: all records that wait, then one step of trimming. False at the end.
  bool turn();
  void commit(const std::vector<Record>& records);
  void trim_some(WallTime before);
  void read();
  void without_reader(const std::function<void()>& work);
  void ask(Question question);

  std::unique_ptr<StoreWriter> writer_;
  std::unique_ptr<Database> reading_connection_;
  std::unique_ptr<StoreReader> reader_;
  Sequence last_sequence_ = 0;
  WallTime last_timestamp_{};
  std::optional<Error> damage_;
  Callbacks callbacks_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Record> queue_;
  std::optional<WallTime> trim_before_;
  Counters counters_;
  bool stopping_ = false;

  std::mutex questions_mutex_;
  std::condition_variable asked_;
  std::deque<Question> questions_;
  WallTime horizon_{};
  bool reading_stops_ = false;
  /// The writing thread waits for reading_: no further question begins until it has released it.
  bool reading_pauses_ = false;
  /// Held during a question, which is bounded.
  std::mutex reading_;

  std::thread thread_;
  std::thread reading_thread_;
};

/// Reads a copy of the store, so that nothing in the state directory changes, whatever its version and
/// condition. Beside a running daemon the copy is as of one of its commits. Returns nothing if there is no
/// store. Throws Error that names the file, as Store does, and EBUSY if a daemon of schema 1 or 2 uses the
/// store, or if it cannot be read while a daemon runs.
[[nodiscard]] std::optional<module::RecordedState> peek_store(const std::string& directory);

}  // namespace resourced::daemon::store

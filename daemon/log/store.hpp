// The durable side of the daemon: the event log, and snapshots of the State, in one SQLite file. One thread
// writes: records are queued, and those that wait while one commit runs go into the next, so one fsync serves
// many. Another thread reads history over a connection of its own, so commits wait for no reader.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "core/module/state.hpp"
#include "core/time.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/log/past_reader.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/snapshot_rows.hpp"
#include "daemon/log/usage_rows.hpp"
#include "daemon/log/usage_search.hpp"

namespace resourced::daemon::log {

class Database;
struct CopiedStore;
class StoreReader;
class StoreWriter;

/// The name of the store's file in a state directory.
inline constexpr const char* store_file = "resourced.sqlite";

/// Returns the path of the store's file. Creates a missing state directory. Throws Error that names it.
[[nodiscard]] std::string store_path(const std::string& directory);

class Store final : public EventLog {
 public:
  /// The store's threads call `post`, which runs a function on the loop. The other callbacks are called on
  /// the loop.
  struct Callbacks {
    std::function<void(std::function<void()>)> post;
    /// Called when this event and all before it are on disk.
    std::function<void(Sequence)> committed;
    /// Called when nothing is committed any more, because of this error.
    std::function<void(const Error&)> failed;
    /// Called when the history cannot be trimmed, as it is damaged; everything else works.
    std::function<void(const Error&)> not_trimmed = [](const Error& /*error*/) {};
  };

  /// Opens the store of a state directory, which is created if it does not exist, and locks it against a
  /// second daemon. Throws Error that names the file and says what to do.
  explicit Store(const std::string& directory);
  ~Store() override;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  Store(Store&&) = delete;
  Store& operator=(Store&&) = delete;

  /// Reads the state after the last event. To be called before start(). Throws Error EBADMSG that names the
  /// event or the snapshot if it cannot be read, ENODATA if the log does not lead to it.
  [[nodiscard]] module::State load();
  /// The time at which an earlier daemon last watched node agents (StateLock::watched).
  [[nodiscard]] std::optional<WallTime> watched() const;
  void write_watched(WallTime now) const noexcept;
  /// Reads the last event, without its text if it is hidden. To be called before start(). Returns nothing if
  /// the log is empty or the event cannot be read.
  [[nodiscard]] std::optional<LoggedEvent> last_event();
  [[nodiscard]] Sequence last_sequence() const noexcept override { return last_sequence_; }
  [[nodiscard]] bool is_numbered() const noexcept override { return true; }
  [[nodiscard]] WallTime last_timestamp() const noexcept override { return last_timestamp_; }
  /// The error of the last event if it cannot be read. Journals end there; everything else works.
  [[nodiscard]] const std::optional<Error>& damage() const noexcept { return damage_; }

  void start(Callbacks callbacks);

  void append(Record record) override;
  void append_all(std::vector<Record> records) override;
  void ask(Question question) override;
  [[nodiscard]] bool wants_snapshot() const noexcept override { return wants_snapshot_; }

  /// Hides events before this time from consumers that begin from now on, and drops, in steps, events before
  /// the time of the previous call: a consumer has the time between two calls to read them. 0 keeps all.
  void trim(WallTime before);

  /// Makes a copy of the present state (store_copy.hpp). The loop calls `answer` with it, or with the reason
  /// why it cannot be made now. One copy at a time.
  void copy(std::size_t most_bytes, std::function<void(std::variant<CopiedStore, Error>)> answer);

  /// Commits the queued records, and ends the threads. Waiting questions get no answer. Then writes a
  /// snapshot of `present`, the state after event `applied`, for the next start, if `present` is not null and
  /// the store ends with that event.
  void stop(const module::State* present = nullptr, Sequence applied = 0);

  [[nodiscard]] Counters counters() const override;

 private:
  // A trim, or a part of one: drops events that are older than `before`, up to `last`.
  struct Trim {
    WallTime before{};
    Sequence last = 0;
    /// There may be more events to drop after this part.
    bool is_part = false;
    friend bool operator==(const Trim&, const Trim&) = default;
  };

  void run(void (Store::*thread)());
  void work();
  // One turn of the writing thread: all records that wait, then one step of trimming. Returns false at the
  // end.
  bool turn();
  void commit(const std::vector<Record>& records);
  void trim_some(const Trim& trim);
  // A snapshot, and an extension of the roll-ups up to its event.
  struct PastRows {
    SnapshotRow snapshot;
    std::optional<RollUp> usage = std::nullopt;
  };
  // Work on the past (store_past.cpp), in steps on the reading thread. `step` returns false until the task is
  // done. One task at a time is under way, as each has states of all targets. But one that `yields`, as it
  // takes longer, lets all others that wait go first after each of its steps.
  struct PastTask {
    std::function<bool()> step;
    bool yields = false;
  };
  void ask_past(PastTask task, bool first);
  // Prepares a trim. Trims come one after another, as each extends the roll-ups of the one before.
  void prepare_trim(WallTime before);
  void look_for_base(WallTime before);
  void end_trim();
  struct TrimBase;
  bool find_base(TrimBase& base);
  void begin_base(TrimBase& base);
  /// Lets the trim end at another snapshot, as the log cannot be read up to its planned end. Returns false if
  /// there is nothing to search for: the trim was handed over, or nothing can be dropped.
  bool retreat(TrimBase& base);
  void hand_over(TrimBase& base, std::optional<PastRows> rows);
  [[nodiscard]] PastSources sources() const { return {*reader_, *past_, *usage_}; }
  // Called by the writing thread; begins only when no records wait.
  void extend_snapshots();
  bool extend_snapshots_to(Sequence last, std::optional<PastReader::Search>& search);
  bool end_extension(Sequence snapshot, Sequence stride);
  void hand_over(std::optional<PastRows> rows, std::optional<Trim> trim);
  // Returns false if the disk is full.
  bool write_snapshots(const std::vector<PastRows>& rows);
  void read();
  void without_reader(const std::function<void()>& work);
  void take(FindTargets&& question);
  void take(FindStart&& question);
  void take(ReadPage&& question);
  void take(ReadPast&& question);
  void take(ReadUsage&& question);
  /// Gives work to the reading thread.
  void read_later(std::function<void()> work);

  std::unique_ptr<StoreWriter> writer_;
  std::unique_ptr<Database> reading_connection_;
  std::unique_ptr<StoreReader> reader_;
  std::unique_ptr<PastReader> past_;
  std::unique_ptr<UsageReader> usage_;
  Sequence last_sequence_ = 0;
  WallTime last_timestamp_{};
  std::optional<Error> damage_;
  Callbacks callbacks_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Record> queue_;
  /// The records of the present commit; only the writing thread uses them. They and the queue are swapped,
  /// and keep their memory: a queue that grows anew for each commit moves its records, which are large.
  std::vector<Record> writing_;
  std::optional<Trim> trim_;
  /// Whether a trim is prepared or carried out, and the time that trim() was called with meanwhile.
  bool is_trimming_ = false;
  std::optional<WallTime> trim_next_;
  /// Snapshots that the writing thread is to write.
  std::vector<PastRows> snapshots_;
  /// Snapshots up to event `chained_` are no further apart than they should be. The next one is due `stride_`
  /// events later.
  Sequence chained_ = 0;
  Sequence stride_ = 1;
  bool is_extended_ = false;
  std::atomic<bool> wants_snapshot_ = false;
  Counters counters_;
  bool stopping_ = false;

  std::mutex questions_mutex_;
  std::condition_variable asked_;
  std::deque<std::function<void()>> questions_;
  std::deque<PastTask> past_tasks_;
  bool is_past_next_ = false;
  WallTime horizon_{};
  bool reading_stops_ = false;
  /// Set while the writing thread waits for reading_: no further question begins until it has released it.
  bool reading_pauses_ = false;
  /// Held during a question or a step of a task, each of which is bounded.
  std::mutex reading_;

  std::thread thread_;
  std::thread reading_thread_;
};

/// Calls `read` with a copy of the store, so that nothing in the state directory changes, whatever its
/// version and condition. Beside a running daemon the copy is as of one of its commits. Returns false if
/// there is no store. Throws Error that names the file, as Store does, and EBUSY if it cannot be read while a
/// daemon runs.
[[nodiscard]] bool read_copy(const std::string& directory, const std::function<void(StoreWriter&)>& read);

struct Backup {
  /// The last event of the copy.
  Sequence last = 0;
  std::uintmax_t bytes = 0;
};
/// Writes a copy of the store (read_copy()) to a new file with mode 0600. All events, documents and snapshots
/// that events follow from are read in the copy first. Throws Error that names the file, and leaves none:
/// EEXIST if the file is there, ENOENT if there is no store, EBADMSG for a damaged log.
[[nodiscard]] Backup backup_store(const std::string& directory, const std::string& file);

struct PeekedStore {
  module::State state;
  /// The time of the last event; the epoch for none.
  WallTime last{};
};
/// Reads the state of a copy of the store (read_copy()). Returns nothing if there is no store.
[[nodiscard]] std::optional<PeekedStore> peek_store(const std::string& directory);

}  // namespace resourced::daemon::log

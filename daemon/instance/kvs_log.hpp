// The event log of a Flux instance: events are durable once they are in the instance's KVS, where Flux's own
// module finds them, too. Past events are kept in memory, as far as the journal goes back.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"
#include "daemon/instance/kept_state.hpp"
#include "daemon/log/event_log.hpp"

namespace resourced::daemon::instance {

// The functions below make requests to the module `kvs`, and read their answers.

/// Makes the request kvs.lookup of a key.
[[nodiscard]] nlohmann::json kvs_lookup(const std::string& key);
/// Returns the value of the key in the answer. Throws Error EPROTO, also for a value that is not complete.
[[nodiscard]] std::string kvs_value(const std::string& key, const nlohmann::json& answer);

struct KvsChange {
  std::string key;
  std::string value;
  /// Whether to append to the present value of the key.
  bool appends = false;
};
/// Makes the request kvs.commit of all these changes at once. With `sync` it is answered once they are on
/// disk.
[[nodiscard]] nlohmann::json kvs_commit(const std::vector<KvsChange>& changes, bool sync);

/// Keys of Flux.
inline constexpr const char* resources_key = "resource.R";
inline constexpr const char* eventlog_key = "resource.eventlog";
inline constexpr const char* checkpoint_key = "checkpoint.resource";
/// Key of the properties that were added or removed at run time, which Flux's own module does not use.
inline constexpr const char* properties_key = "resourced.properties";
/// Key of the actors of drains (kept_actors.hpp).
inline constexpr const char* actors_key = "resourced.actors";

class KvsLog final : public log::EventLog {
 public:
  struct Callbacks {
    /// Sends a kvs.commit, and calls the function when it is answered: with null, or with the error.
    std::function<void(const nlohmann::json&, std::function<void(const Error*)>)> commit;
    /// Calls a function from the loop.
    std::function<void(std::function<void()>)> post;
    /// Called when all events up to this one are durable.
    std::function<void(log::Sequence)> committed;
    /// Called when a commit was refused: no further event becomes durable.
    std::function<void(const Error&)> failed;
    /// Called when an event is durable, before `committed`: with its name, and the event as one line of JSON.
    std::function<void(const std::string&, const std::string&)> recorded;
    /// Return R, and the value of properties_key, after all appended events.
    std::function<std::string()> resources;
    std::function<std::string()> properties;
  };
  /// The state of an earlier process of the same module.
  struct Predecessor {
    /// Whether readers of the earlier process continue here (EventFilter::resumes).
    bool has_readers = false;
    /// Whether the KVS has its definition of the resources: then the first one of this process is not written
    /// again.
    bool has_defined = false;
  };
  /// Makes a log. The journal goes back over `most` events, one of which may be a truncation.
  KvsLog(std::vector<KeptState::Line> history, std::size_t most, Predecessor predecessor);

  /// Sets the callbacks. Must be called before the first append.
  void begin(Callbacks callbacks) { callbacks_ = std::move(callbacks); }
  void set_most(std::size_t most);
  /// Commits changes in addition to those of events, in order with them.
  void change(std::vector<KvsChange> changes);
  /// Commits the remaining changes, and a last one if given, with `sync`. Calls `done` once all is committed.
  void finish(std::optional<KvsChange> change, std::function<void()> done);

  [[nodiscard]] log::Sequence last_sequence() const noexcept override { return last_; }
  /// Returns false: the KVS does not have all events, and numbers none of them.
  [[nodiscard]] bool is_numbered() const noexcept override { return false; }
  [[nodiscard]] WallTime last_timestamp() const noexcept override { return last_timestamp_; }
  void append(log::Record record) override;
  /// Reads events from before begin(): streams::Journal has the others. Refuses questions about the past,
  /// because the KVS keeps events, and no states.
  void ask(log::Question question) override;
  [[nodiscard]] Counters counters() const override { return counters_; }

 private:
  void trim();
  void add_changes(const log::Record& record);
  void append_line(const char* key, std::string line);
  void commit_soon();
  void commit();
  void on_committed(log::Sequence last, const std::vector<std::pair<std::string, std::string>>& events);
  [[nodiscard]] log::Sequence first() const noexcept { return last_ + 1 - history_.size() - times_.size(); }
  [[nodiscard]] log::HistoryStart start_of(const log::EventFilter& filter, std::size_t most) const;
  [[nodiscard]] log::HistoryPage page_of(const log::EventFilter& filter, log::Sequence from, log::Sequence to,
                                         std::size_t limit) const;

  Callbacks callbacks_;
  std::deque<KeptState::Line> history_;
  /// Timestamps of the appended events.
  std::deque<WallTime> times_;
  std::size_t most_;
  Predecessor predecessor_;
  log::Sequence last_ = 0;
  WallTime last_timestamp_{};
  /// Timestamp of the last event before the beginning of the journal.
  std::optional<WallTime> dropped_;
  /// Events of `history` before the beginning of the journal, if readers may have missed some.
  struct Dropped {
    WallTime timestamp{};
    text::IdSet ranks;
  };
  std::vector<Dropped> dropped_history_;
  /// Changes of the next commit, and the events for which `recorded` is called after it.
  std::vector<KvsChange> changes_;
  std::vector<std::pair<std::string, std::string>> events_;
  bool is_busy_ = false;
  bool is_posted_ = false;
  bool has_failed_ = false;
  std::function<void()> finished_;
  Counters counters_;
};

}  // namespace resourced::daemon::instance

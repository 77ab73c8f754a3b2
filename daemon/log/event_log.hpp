// Interface of the event log: the executor appends events, the journal reads them. Implemented by the store
// on disk (store.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "core/module/state.hpp"
#include "core/rset/resource_set.hpp"
#include "core/time.hpp"
#include "daemon/log/records.hpp"
#include "proto/topics/usage.hpp"

namespace resourced::daemon::log {

// Targets that a request for the journal names. The reading thread of the store looks them up, since a text
// of some hundred thousand bytes takes milliseconds.

/// Parses targets that a user names: ranks of the inventory, or hosts, including hosts that have left it.
/// Throws Error EINVAL as parse_known_targets() does.
[[nodiscard]] EventTargets event_targets(std::string_view text,
                                         std::shared_ptr<const rset::ResourceSet> inventory);

/// Memory of the filters of one follower of the journal, in bytes. Atomic: the loop and the reading thread
/// change it.
using FilterBytes = std::atomic<std::size_t>;

class NamedTargets {
 public:
  /// Bytes that an object counts beside its text: the set of ranks, and the object itself.
  static constexpr std::size_t envelope = 4096;

  /// Adds the bytes of this object to `taken` for as long as it lives.
  NamedTargets(std::string text, std::shared_ptr<const rset::ResourceSet> inventory,
               std::shared_ptr<FilterBytes> taken);
  ~NamedTargets();
  NamedTargets(const NamedTargets&) = delete;
  NamedTargets& operator=(const NamedTargets&) = delete;
  NamedTargets(NamedTargets&&) = delete;
  NamedTargets& operator=(NamedTargets&&) = delete;

  [[nodiscard]] const std::shared_ptr<const rset::ResourceSet>& inventory() const noexcept {
    return inventory_;
  }

  /// Looks the targets up and drops the text; later calls do nothing. All calls come from one thread.
  void find();
  /// The targets, or the error of a text that was refused. Valid once find() has returned, on any thread that
  /// was told so. targets() requires that refusal() is empty.
  [[nodiscard]] const EventTargets& targets() const { return *targets_; }
  [[nodiscard]] const std::optional<Error>& refusal() const noexcept { return refusal_; }

 private:
  void take(std::size_t size);

  std::optional<std::string> text_;
  std::shared_ptr<const rset::ResourceSet> inventory_;
  std::shared_ptr<FilterBytes> taken_;
  std::size_t size_ = 0;
  std::optional<EventTargets> targets_;
  std::optional<Error> refusal_;
};

// Questions to the log. The loop calls `answer`, never from within EventLog::ask().

struct FindTargets {
  std::shared_ptr<NamedTargets> targets;
  std::function<void()> answer;
};

/// The targets of a filter must have been looked up (FindTargets) before it is used.
struct FindStart {
  EventFilter filter;
  std::size_t most = 0;
  std::function<void(HistoryStart)> answer;
};

struct ReadPage {
  EventFilter filter;
  Sequence from = 0;
  Sequence to = 0;
  std::size_t limit = 0;
  std::function<void(HistoryPage)> answer;
};

/// An answer about the past.
struct Past {
  std::string text;
  /// Why there is no text. ENODATA: the log does not go back so far. ENOSYS: this log keeps no states.
  std::optional<Error> failure;
  /// The last event of the rendered state; 0 in a report.
  Sequence sequence = 0;
};

/// Asks for the state after all events up to `at`. A time after the last event gives the state after that
/// event.
struct ReadPast {
  WallTime at{};
  /// Set once nobody waits for the answer any more: the question then ends with ECANCELED, without the work.
  std::shared_ptr<const std::atomic<bool>> is_abandoned;
  /// Renders the state. Called by the thread that found it, with the last event that the state has.
  std::function<std::string(const module::State&, Sequence)> render;
  std::function<void(Past)> answer;
};

/// Asks for a report of the times of targets by state up to `request.until`, which must be set.
struct ReadUsage {
  proto::topics::ReportRequest request;
  /// Same as ReadPast::is_abandoned.
  std::shared_ptr<const std::atomic<bool>> is_abandoned;
  std::function<void(Past)> answer;
};

using Question = std::variant<FindTargets, FindStart, ReadPage, ReadPast, ReadUsage>;

class EventLog {
 public:
  EventLog() = default;
  virtual ~EventLog() = default;
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  EventLog(EventLog&&) = delete;
  EventLog& operator=(EventLog&&) = delete;

  /// The sequence of the last event that is durable, 0 in an empty log.
  [[nodiscard]] virtual Sequence last_sequence() const noexcept = 0;
  /// Whether events keep their sequences over all processes that serve the log, so that a client may name an
  /// event by its sequence.
  [[nodiscard]] virtual bool is_numbered() const noexcept = 0;
  /// The timestamp of the last event that is durable, or if it is damaged, of the last event that is whole. 0
  /// in an empty log.
  [[nodiscard]] virtual WallTime last_timestamp() const noexcept = 0;

  /// Queues a record, whose sequence follows that of the record before. The loop calls
  /// Service::on_committed() once the record is durable.
  virtual void append(Record record) = 0;
  /// Queues records of which a crash may leave all or none.
  virtual void append_all(std::vector<Record> records) {
    for (Record& record : records) append(std::move(record));
  }

  /// Questions about events are answered in their order; those about the past may be answered later.
  virtual void ask(Question question) = 0;
  /// Whether the next record must bring a snapshot, as the log leads to no present state without one.
  [[nodiscard]] virtual bool wants_snapshot() const noexcept { return false; }

  struct Counters {
    std::uint64_t commits = 0;
    std::uint64_t events = 0;
    /// The size of the store's write-ahead log on disk; 0 where there is none.
    std::uint64_t log_bytes = 0;
  };
  [[nodiscard]] virtual Counters counters() const = 0;
};

}  // namespace resourced::daemon::log

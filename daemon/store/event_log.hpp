// Interface of the event log: the executor appends events, the journal reads them. Implemented by the store
// on disk (store.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/time.hpp"
#include "daemon/store/named_targets.hpp"
#include "daemon/store/records.hpp"

namespace resourced::daemon::store {

class EventLog {
 public:
  EventLog() = default;
  virtual ~EventLog() = default;
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  EventLog(EventLog&&) = delete;
  EventLog& operator=(EventLog&&) = delete;

  /// The last event that is durable, 0 in an empty log.
  [[nodiscard]] virtual Sequence last_sequence() const noexcept = 0;
  /// The timestamp of that event, or if it is damaged, of the last event that
  /// is whole. 0 in an empty log.
  [[nodiscard]] virtual WallTime last_timestamp() const noexcept = 0;

  /// Queues a record. Sequences come in order without gaps. The loop calls Service::on_committed() once the
  /// record is durable.
  virtual void append(Record record) = 0;

  /// Queues a question to the log, in order; the answer comes by the loop, never from within the call.
  /// Targets are looked up before it, where the filter has them.
  virtual void find_targets(std::shared_ptr<NamedTargets> targets, std::function<void()> answer) = 0;
  virtual void find_start(const EventFilter& filter, std::size_t most,
                          std::function<void(HistoryStart)> answer) = 0;
  virtual void read_page(const EventFilter& filter, Sequence from, Sequence to, std::size_t limit,
                         std::function<void(HistoryPage)> answer) = 0;

  struct Counters {
    std::uint64_t commits = 0;
    std::uint64_t events = 0;
  };
  [[nodiscard]] virtual Counters counters() const = 0;
};

}  // namespace resourced::daemon::store

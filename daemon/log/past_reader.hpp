// Finds the state at a time in the past, from the last stored snapshot before it and the events after that
// one. Each step is bounded, so that other readers of the log have their turn in between.
#pragma once

#include <functional>

#include "core/module/event.hpp"
#include "core/module/state.hpp"
#include "core/time.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/snapshot_rows.hpp"
#include "daemon/log/sqlite.hpp"
#include "daemon/log/store_reader.hpp"
#include "proto/documents.hpp"

namespace resourced::daemon::log {

/// Decodes the complete event of a log entry. Throws Error EINVAL for an entry that cannot be read, ENODATA
/// for one of an imported log, which lacks a part of what it changes, and what `find` throws.
[[nodiscard]] module::Event event_of(const LoggedEvent& logged, const proto::FindDocument& find);

class PastReader {
 public:
  PastReader(Database& database, StoreReader& log);

  /// A search for the state after event `last`.
  struct Search {
    module::State states;
    /// The last event that `states` has so far.
    Sequence at = 0;
    Sequence last = 0;
    [[nodiscard]] bool is_done() const noexcept { return at >= last; }
  };

  /// Begins a search for the state after all events up to this time. Throws Error ENODATA if it is not kept,
  /// EBADMSG for a damaged snapshot or log, like the other functions.
  [[nodiscard]] Search begin(WallTime at);
  /// Begins a search for the state after this event: from the last snapshot before it that is whole, or from
  /// an empty state if the log is there from its beginning.
  [[nodiscard]] Search begin_at(Sequence last);
  /// Called before an event is applied. Returns false to end the step after this event.
  using Visit = std::function<bool(const module::State&, const module::Event&)>;
  /// Applies the next `most` events, and events_per_snapshot at most.
  void advance(Search& search, Sequence most = events_per_snapshot, const Visit& visit = {});

  /// Reads the state after the last event. Throws Error EBADMSG that names the event or snapshot that is
  /// damaged, and the last event up to which the log can be read.
  [[nodiscard]] module::State last_states();

  /// Returns this event, or the first one after it, whose state can be found; 0 for none.
  [[nodiscard]] Sequence reachable(Sequence wanted);
  /// Returns the last snapshot up to this event, 0 for none.
  [[nodiscard]] Sequence snapshot_until(Sequence last);
  /// Returns the first snapshot from this event on, 0 for none.
  [[nodiscard]] Sequence snapshot_from(Sequence first);
  /// Number of events from this snapshot until the next one is due (stride_after_snapshot()).
  [[nodiscard]] Sequence stride_after(Sequence snapshot);

 private:
  [[nodiscard]] Sequence one(Statement& statement, Sequence sequence);
  /// Reads the state of a snapshot. Throws Error EBADMSG if it is damaged.
  [[nodiscard]] module::State snapshot_of(Sequence sequence);

  Database& database_;
  StoreReader& log_;
  Statement find_;
  Statement until_;
  Statement from_;
  Statement size_;
};

}  // namespace resourced::daemon::log

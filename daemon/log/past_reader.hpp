// Finds the states at a time in the past: the last stored snapshot before it, and the events after that one.
// Each step is bounded, so that other readers of the log have their turn in between.
#pragma once

#include "core/module/event.hpp"
#include "core/module/state.hpp"
#include "core/time.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/snapshot_rows.hpp"
#include "daemon/log/sqlite.hpp"
#include "daemon/log/store_reader.hpp"
#include "proto/documents.hpp"

namespace resourced::daemon::log {

/// The event of an entry, complete. Throws Error EINVAL for one that cannot be read, ENODATA for one of an
/// imported log, which lacks a part of what it changes, and what `find` throws.
[[nodiscard]] module::Event event_of(const LoggedEvent& logged, const proto::FindDocument& find);

class PastReader {
 public:
  PastReader(Database& database, StoreReader& log);

  /// States on the way to those after event `last`.
  struct Search {
    module::State states;
    /// The last event that they have.
    Sequence at = 0;
    Sequence last = 0;
    [[nodiscard]] bool is_done() const noexcept { return at >= last; }
  };

  /// A search for the states after all events up to this time. Throws Error ENODATA if they are not kept,
  /// EBADMSG for a damaged snapshot or log, like the other functions.
  [[nodiscard]] Search begin(WallTime at);
  /// The same for the states after this event: from the last snapshot before it that is whole, or from an
  /// empty state if the log is there from its beginning.
  [[nodiscard]] Search begin_at(Sequence last);
  /// Applies the next `most` events, and events_per_snapshot at most.
  void advance(Search& search, Sequence most = events_per_snapshot);

  /// The states after the last event. Throws Error EBADMSG that names the event or snapshot that is damaged,
  /// and the last event up to which the log can be read.
  [[nodiscard]] module::State last_states();

  /// This event, or the first one after it, whose states can be found; 0 for none.
  [[nodiscard]] Sequence reachable(Sequence wanted);
  /// The last snapshot up to this event, 0 for none.
  [[nodiscard]] Sequence snapshot_until(Sequence last);
  /// The first snapshot from this event on, 0 for none.
  [[nodiscard]] Sequence snapshot_from(Sequence first);
  /// stride_after_snapshot() of this one.
  [[nodiscard]] Sequence stride_after(Sequence snapshot);

 private:
  [[nodiscard]] Sequence one(Statement& statement, Sequence sequence);
  /// The state of a snapshot. Throws Error EBADMSG if it is damaged.
  [[nodiscard]] module::State snapshot_of(Sequence sequence);

  Database& database_;
  StoreReader& log_;
  Statement find_;
  Statement until_;
  Statement from_;
  Statement size_;
};

}  // namespace resourced::daemon::log

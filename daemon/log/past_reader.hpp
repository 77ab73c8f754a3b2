// Finds the states at a time in the past: the last stored snapshot before it, and the events after that one.
// Each step is bounded, so that other readers of the log have their turn in between.
#pragma once

#include <optional>

#include "core/module/event.hpp"
#include "core/module/snapshot.hpp"
#include "core/time.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/snapshot_rows.hpp"
#include "daemon/log/sqlite.hpp"
#include "daemon/log/store_reader.hpp"

namespace resourced::daemon::log {

/// Nothing for an entry that changes no state. Throws Error EINVAL for one that cannot be read.
[[nodiscard]] std::optional<module::Event> event_of(const LoggedEvent& logged);

class PastReader {
 public:
  PastReader(Database& database, StoreReader& log);

  /// States on the way to those after event `last`.
  struct Search {
    module::Snapshot states;
    /// The last event that they have.
    Sequence at = 0;
    Sequence last = 0;
    [[nodiscard]] bool is_done() const noexcept { return at >= last; }
  };

  /// A search for the states after all events up to this time. Throws Error ENODATA if they are not kept,
  /// EBADMSG for a damaged snapshot or log, like the other functions.
  [[nodiscard]] Search begin(WallTime at);
  /// The same for the states after this event: from the last snapshot before it. Where there is none the log
  /// does not tell them, as it has no exclusions, and no states of a Flux instance.
  [[nodiscard]] Search begin_at(Sequence last);
  /// Applies the next events_per_snapshot events at most.
  void advance(Search& search);

  /// The last snapshot up to this event, 0 for none.
  [[nodiscard]] Sequence snapshot_until(Sequence last);
  /// The first snapshot from this event on, 0 for none.
  [[nodiscard]] Sequence snapshot_from(Sequence first);
  /// stride_after_snapshot() of this one.
  [[nodiscard]] Sequence stride_after(Sequence snapshot);

 private:
  [[nodiscard]] Sequence one(Statement& statement, Sequence sequence);

  Database& database_;
  StoreReader& log_;
  Statement find_;
  Statement until_;
  Statement from_;
  Statement size_;
};

}  // namespace resourced::daemon::log

// Answers questions to the event log on disk, on its own connection and thread, so that commits do not wait
// for it. A page is bounded in its events and in the rows that it reads. Every row is checked against its
// checksum, and sequences have no gaps, so an answer is either correct or an error.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/time.hpp"
#include "daemon/log/event_rows.hpp"
#include "daemon/log/host_ids.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/sqlite.hpp"

namespace resourced::daemon::log {

class StoreReader {
 public:
  /// Upper bounds of one page: rows of events or blocks that it looks at, and their bytes.
  static constexpr std::size_t most_looked_at = 4096;
  static constexpr std::size_t most_bytes_looked_at = std::size_t{4} << 20;

  StoreReader(Database& database, const HostIds& hosts);

  /// Finds where the newest `most` events begin, or all that pass `since` and `after` if one is given. Events
  /// before `horizon` count as dropped, as they soon will be. Throws Error EBADMSG for a damaged log.
  [[nodiscard]] HistoryStart start(const EventFilter& filter, std::size_t most, WallTime horizon = {});

  /// Reads at most `limit` events from `from` to `to`, which is included and must exist. Throws Error EBADMSG
  /// that names a damaged event.
  [[nodiscard]] HistoryPage page(const EventFilter& filter, Sequence from, Sequence to, std::size_t limit);

  /// Finds the last event up to this time, which may be the last one that was dropped. Returns 0 if all are
  /// later, or if it was dropped earlier. Throws Error EBADMSG.
  [[nodiscard]] Sequence last_until(WallTime at);
  /// The time of an event, or of the last one that was dropped. Throws Error EBADMSG.
  [[nodiscard]] WallTime time_of(Sequence sequence);
  /// The last event that was dropped, 0 if none was.
  [[nodiscard]] Sequence dropped();
  /// The last event that is kept, 0 in an empty log.
  [[nodiscard]] Sequence last();

  /// Whether the log begins with event 1 and has it complete, so that states follow from it.
  [[nodiscard]] bool begins_complete();
  /// Reads a document. Throws Error EBADMSG if it is missing or damaged.
  [[nodiscard]] std::shared_ptr<const std::string> document(const std::string& name);

  struct LastTimestamp {
    WallTime timestamp{};
    /// The error of the last event, if that is damaged.
    std::optional<Error> damage;
  };
  /// Reads the timestamp of the last event that is whole, 0 in a new store.
  [[nodiscard]] LastTimestamp last_timestamp();

 private:
  // The last event that was dropped.
  struct Trimmed {
    Sequence sequence = 0;
    WallTime timestamp{};
  };
  // The rows and bytes that one page may still look at.
  struct Budget {
    std::size_t rows = most_looked_at;
    std::size_t bytes = most_bytes_looked_at;
    /// Counts one row of so many bytes. Returns false once the budget is used up.
    [[nodiscard]] bool spend(std::size_t more_bytes) noexcept {
      if (rows == 0 || bytes == 0) return false;
      --rows;
      bytes -= std::min(bytes, more_bytes);
      return true;
    }
  };

  [[nodiscard]] Trimmed trimmed();
  [[nodiscard]] Sequence newest();
  /// The parts of an event that never decrease along the log.
  struct Mark {
    WallTime timestamp{};
    /// Number of events up to this one that are not of the ledger, dropped ones included.
    Sequence others = 0;
    bool of_ledger = false;
  };
  /// Reads the mark of an event. Throws Error EBADMSG for a damaged event.
  [[nodiscard]] Mark mark_of(Sequence sequence);
  [[nodiscard]] WallTime timestamp_of(Sequence sequence) { return mark_of(sequence).timestamp; }
  /// The timestamp of the event before `first`, or of `first` itself if that event is damaged.
  [[nodiscard]] WallTime timestamp_before(Sequence first);
  /// Returns the mark of the first event from `sequence` on that can be read, and sets `sequence` to it;
  /// nothing if none of the next most_looked_at events can be read.
  [[nodiscard]] std::optional<Mark> mark_at_or_after(Sequence& sequence, Sequence end);
  /// The first event for which `is_before` is false; it is true for all that are before that one.
  [[nodiscard]] Sequence first_not(const std::function<bool(const Mark&)>& is_before, Sequence oldest,
                                   Sequence newest);
  [[nodiscard]] Sequence first_since(WallTime since, Sequence oldest, Sequence newest) {
    return first_not([since](const Mark& mark) { return mark.timestamp < since; }, oldest, newest);
  }
  /// The first of the newest `most` events that are not of the ledger.
  [[nodiscard]] Sequence first_of_newest(std::size_t most, Sequence oldest, Sequence newest);
  /// The first event after `of_ledger`, one of the ledger, that may be another one.
  [[nodiscard]] Sequence skip_ledger(Sequence of_ledger, Sequence to);
  /// The first event from `first` on that the reader does not have yet (EventFilter::known).
  [[nodiscard]] Sequence after_known(const EventFilter& filter, Sequence first, Sequence last);
  /// The first sequence at or after `from` whose block may have an event of one of the hosts, as far as the
  /// budget goes.
  [[nodiscard]] Sequence skip_blocks(const text::IdSet& hosts, Sequence from, Sequence to, Budget& budget);
  /// The R of a definition. Throws Error EBADMSG that names the event.
  [[nodiscard]] std::shared_ptr<const std::string> resources_of(Sequence sequence, const std::string& name);
  void read(HistoryPage& page, const EventFilter& filter, Sequence from, Sequence to, std::size_t limit);
  [[noreturn]] void fail(Sequence sequence, std::string_view what) const;

  Database& database_;
  const HostIds& hosts_;
  Statement events_;
  Statement mark_;
  Statement block_;
  Statement document_;
  Statement newest_;
  Statement trimmed_;
};

}  // namespace resourced::daemon::log

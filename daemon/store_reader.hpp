// Questions to the event log on disk. Runs on the store's thread, between commits, a page at a time.
#pragma once

#include <cstddef>
#include <string>

#include "daemon/journal_source.hpp"
#include "daemon/sqlite.hpp"

namespace resourced::daemon {

class StoreReader {
 public:
  explicit StoreReader(Database& database);

  /// Where the newest `most` events begin, or all that pass `since` if that is given.
  [[nodiscard]] HistoryStart start(const EventFilter& filter, std::size_t most);

  /// At most `limit` events from `from` up to and with `to`.
  [[nodiscard]] HistoryPage page(const EventFilter& filter, Sequence from, Sequence to, std::size_t limit);

  /// The timestamp of the last event, 0 in a new store.
  [[nodiscard]] double last_timestamp();

 private:
  [[nodiscard]] bool knows(const std::string& host);
  HistoryPage page_of_all(Sequence from, Sequence to, std::size_t limit);
  HistoryPage page_of_hosts(const EventFilter& filter, Sequence from, Sequence to, std::size_t limit);

  Statement all_;
  Statement of_host_;
  Statement wide_;
  Statement first_since_;
  Statement newest_;
  Statement oldest_;
  Statement timestamp_of_;
  Statement trimmed_;
  Statement last_timestamp_;
  Statement known_host_;
};

}  // namespace resourced::daemon

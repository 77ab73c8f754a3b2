// The rows of the event log, for the writer and the reader.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "daemon/log/host_ids.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/sqlite.hpp"

namespace resourced::daemon::log {

/// A row of `event`.
struct EventRow {
  Sequence sequence = 0;
  WallTime timestamp{};
  std::string_view name;
  std::string_view text;
  std::optional<std::string_view> rest;
  /// The hosts of the event: an idset of ids in known_host.
  std::string_view hosts;
  /// The name of the document with the R of a resource-define; none if R is not known.
  std::optional<std::string_view> resources;
  /// Number of records of the ledger among the events up to this one. A reader that passes over them searches
  /// for the first event with a larger difference between `sequence` and `ledger`.
  Sequence ledger = 0;

  [[nodiscard]] std::int64_t sum() const noexcept;
};

/// SQL that adds a document: its name, its text, and the last event that needs it. The text takes the place
/// of a stored one, which may be damaged.
inline constexpr const char* put_document =
    "INSERT INTO document(name, text, last) VALUES (?, ?, ?) "
    "ON CONFLICT (name) DO UPDATE SET text = excluded.text, last = max(last, excluded.last)";

/// SQL that selects the last event of a store. A recovery may have given up all events that a trim has kept.
inline constexpr const char* last_event_query =
    "SELECT coalesce((SELECT max(sequence) FROM event), (SELECT sequence FROM trimmed), 0)";

/// The columns of `event`, in the order in which EventText reads them.
inline constexpr const char* event_columns =
    "sequence, timestamp, name, text, rest, hosts, resources, ledger, sum";

/// The texts of a row of `event`, to which its EventRow refers.
struct EventText {
  /// `row` selects event_columns.
  explicit EventText(const Statement& row);
  [[nodiscard]] EventRow row(const Statement& from) const;
  /// Whether the row matches its checksum.
  [[nodiscard]] bool is_whole(const Statement& from) const;

  std::string name;
  std::string text;
  std::optional<std::string> rest;
  std::string hosts;
  std::optional<std::string> resources;
};

/// The number of events whose hosts share one row of `event_block`: block n has those of the block_size
/// sequences from n * block_size on.
inline constexpr Sequence block_size = 256;
[[nodiscard]] std::int64_t block_sum(std::int64_t block, std::string_view hosts) noexcept;
[[nodiscard]] std::int64_t trimmed_sum(Sequence sequence, WallTime timestamp) noexcept;
[[nodiscard]] std::int64_t host_sum(std::int64_t id, std::string_view name) noexcept;

/// Writes events in order, with new hosts and complete blocks, in transactions of the caller. After a failed
/// transaction the object must not be used any more.
class EventRows {
 public:
  /// Continues after `last`, the last event in the store. `hosts` has all hosts of the store.
  EventRows(Database& database, HostIds& hosts, Sequence last);
  /// Begins an empty store after event `last`, up to which there were `ledger` records of the ledger.
  EventRows(Database& database, HostIds& hosts, Sequence last, Sequence ledger);

  void write(const Record& record);

 private:
  void resume(Sequence last);
  void resume_ledger(Sequence last);
  void close_block();

  HostIds& hosts_;
  Statement insert_event_;
  Statement insert_host_;
  Statement insert_block_;
  Statement put_document_;
  Statement read_hosts_;
  /// EventRow::ledger of the last event.
  Sequence ledger_ = 0;
  std::int64_t block_ = 0;
  /// The hosts of the open block; unset if a row of the block is damaged.
  std::optional<text::IdSet> block_hosts_ = text::IdSet{};
};

/// Reads the known hosts of a store. Throws Error EBADMSG where ids are missing or a row is damaged.
void load_hosts(Database& database, HostIds& hosts);

}  // namespace resourced::daemon::log

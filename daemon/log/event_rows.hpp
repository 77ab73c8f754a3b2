// The rows of the event log, for the writer, the reader and the upgrade.
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
  /// An idset of host ids.
  std::string_view hosts;
  /// The id of the resource set of a resource-define, if it is known.
  std::optional<std::int64_t> resources;
  /// How many of the events up to this one are records of the ledger. A reader who does not want those finds
  /// the next other event by a search for the first smaller difference to the sequence.
  Sequence ledger = 0;

  [[nodiscard]] std::int64_t sum() const noexcept;
};

/// The id of a resource set: a checksum of its text.
[[nodiscard]] std::int64_t resource_set_id(std::string_view text) noexcept;
/// Adds a resource set with its id, text and the last event that needs it.
inline constexpr const char* put_resource_set =
    "INSERT INTO resource_set(id, text, last) VALUES (?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET last = max(last, excluded.last)";

/// The number of events whose hosts share one row of `event_block`: block n has those of the block_size
/// sequences from n * block_size on.
inline constexpr Sequence block_size = 256;
[[nodiscard]] std::int64_t block_sum(std::int64_t block, std::string_view hosts) noexcept;

/// Writes events in order, with new hosts and complete blocks, in transactions of the caller. After a failed
/// transaction the object must not be used any more.
class EventRows {
 public:
  /// Continues after `last`, the last event in the store. `hosts` has the known hosts.
  EventRows(Database& database, HostIds& hosts, Sequence last);

  struct New {
    Sequence sequence = 0;
    WallTime timestamp{};
    std::string_view name;
    std::string_view text;
    const text::Hostlist* hosts = nullptr;
    /// May be null.
    const std::string* resources = nullptr;
    /// An event whose text is known to be damaged gets no checksum, so that it is never sent.
    bool is_damaged = false;
    bool of_ledger = false;
  };
  void write(const New& event);

 private:
  void resume(Sequence last);
  void resume_ledger(Sequence last);
  void close_block();

  HostIds& hosts_;
  Statement insert_event_;
  Statement insert_host_;
  Statement insert_block_;
  Statement put_resources_;
  Statement read_hosts_;
  /// As in the row of the last event.
  Sequence ledger_ = 0;
  std::int64_t block_ = 0;
  /// The hosts of the open block; nothing if a row of the block is damaged.
  std::optional<text::IdSet> block_hosts_ = text::IdSet{};
};

/// Reads the known hosts of a store. Throws Error EBADMSG where ids are missing.
void load_hosts(Database& database, HostIds& hosts);

}  // namespace resourced::daemon::log

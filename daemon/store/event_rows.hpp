// The rows of the event log as the writer, the reader and an upgrade share them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "daemon/store/host_ids.hpp"
#include "daemon/store/records.hpp"
#include "daemon/store/sqlite.hpp"

namespace resourced::daemon::store {

/// A row of `event`.
struct EventRow {
  Sequence sequence = 0;
  WallTime timestamp{};
  std::string_view name;
  std::string_view text;
  /// An idset of host ids.
  std::string_view hosts;
  /// The resource set beside a resource-define, where it is known.
  std::optional<std::int64_t> resources;

  [[nodiscard]] std::int64_t sum() const noexcept;
};

/// The id of a resource set: a checksum of its text.
[[nodiscard]] std::int64_t resource_set_id(std::string_view text) noexcept;

/// So many events have their hosts together in one row of `event_block`: block n has those with the sequences
/// n * block_size and up.
inline constexpr Sequence block_size = 256;
[[nodiscard]] std::int64_t block_sum(std::int64_t block, std::string_view hosts) noexcept;

/// Writes events in order, with the hosts that are new and the blocks that are complete. Within transactions
/// of the caller, which drops this object when one fails.
class EventRows {
 public:
  /// Goes on after `last`, the last event that is there. `hosts` has the known hosts.
  EventRows(Database& database, HostIds& hosts, Sequence last);

  struct New {
    Sequence sequence = 0;
    WallTime timestamp{};
    std::string_view name;
    std::string_view text;
    const text::Hostlist* hosts = nullptr;
    /// May be null.
    const std::string* resources = nullptr;
    /// An event whose text is known to be damaged keeps no checksum, so that it is not shown.
    bool is_damaged = false;
  };
  void write(const New& event);

 private:
  void resume(Sequence last);
  void close_block();

  HostIds& hosts_;
  Statement insert_event_;
  Statement insert_host_;
  Statement insert_block_;
  Statement put_resources_;
  Statement read_hosts_;
  std::int64_t block_ = 0;
  /// Nothing where a row of the block cannot be trusted.
  std::optional<text::IdSet> block_hosts_ = text::IdSet{};
};

/// Reads the known hosts of a store. Throws Error EBADMSG where ids are missing.
void load_hosts(Database& database, HostIds& hosts);

}  // namespace resourced::daemon::store

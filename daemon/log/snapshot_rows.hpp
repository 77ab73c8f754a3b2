// Stored snapshots of the states (module::Snapshot), by which the state at a time is found without reading
// the whole log.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/module/snapshot.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/sqlite.hpp"

namespace resourced::daemon::log {

/// The events from one snapshot to the next, as long as the writing thread has time for them; more after a
/// large one, which then takes no more than the events.
inline constexpr Sequence events_per_snapshot = 4096;
[[nodiscard]] constexpr Sequence stride_after_snapshot(std::size_t size) noexcept {
  constexpr Sequence usual_event = 256;
  return std::max<Sequence>(events_per_snapshot, size / usual_event);
}

/// A row of `snapshot`: the states after this event.
struct SnapshotRow {
  Sequence sequence = 0;
  std::string resources;
  std::string text;

  SnapshotRow(Sequence after, const module::Snapshot& snapshot);
};

[[nodiscard]] std::int64_t snapshot_sum(Sequence sequence, std::int64_t resources,
                                        std::string_view text) noexcept;

/// Writes snapshots, in transactions of the caller.
class SnapshotRows {
 public:
  explicit SnapshotRows(Database& database);

  void write(const SnapshotRow& row);
  /// Events up to this one were dropped: drops all snapshots before it but the last, from which the states
  /// after it are found.
  void trim(Sequence dropped);

 private:
  Statement put_;
  Statement put_resources_;
  Statement trim_;
};

}  // namespace resourced::daemon::log

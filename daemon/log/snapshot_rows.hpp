// Stored snapshots of the State, by which a state is found without reading the whole log.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/module/state.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/sqlite.hpp"
#include "os/sha256.hpp"
#include "proto/documents.hpp"

namespace resourced::daemon::log {

/// The events from one snapshot to the next, as long as the writing thread has time for them; more after a
/// large one, which then takes no more than the events.
inline constexpr Sequence events_per_snapshot = 4096;
[[nodiscard]] constexpr Sequence stride_after_snapshot(std::size_t size) noexcept {
  constexpr Sequence usual_event = 256;
  return std::max<Sequence>(events_per_snapshot, size / usual_event);
}

/// A row of `snapshot`: the state after this event.
struct SnapshotRow {
  Sequence sequence = 0;
  proto::Documents documents{os::sha256};
  std::string text;

  SnapshotRow(Sequence after, const module::State& state);
};

[[nodiscard]] std::int64_t snapshot_sum(Sequence sequence, std::string_view text) noexcept;

/// Writes snapshots, in transactions of the caller.
class SnapshotRows {
 public:
  explicit SnapshotRows(Database& database);

  void write(const SnapshotRow& row);
  /// Events up to this one were dropped: drops all snapshots before it but the last, from which the states
  /// after it are found, and the documents that nothing needs any more.
  void trim(Sequence dropped);

 private:
  Statement put_;
  Statement put_document_;
  Statement put_need_;
  Statement trim_;
  Statement trim_needs_;
  Statement trim_documents_;
};

}  // namespace resourced::daemon::log

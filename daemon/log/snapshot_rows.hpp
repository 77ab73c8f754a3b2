// Stored snapshots of the State, from which a state is found without reading the whole log.
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

/// Number of events between two snapshots, as long as the writing thread has time for them. After a large
/// snapshot there are more events, so that snapshots take no more space than events.
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
  /// Trims after events up to `dropped` were dropped: drops all snapshots before that event but the last,
  /// from which the states after it are found, and the documents that nothing needs any more.
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

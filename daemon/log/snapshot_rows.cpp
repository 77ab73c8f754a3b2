#include "daemon/log/snapshot_rows.hpp"

#include "daemon/log/checksum.hpp"
#include "daemon/log/event_rows.hpp"
#include "proto/snapshot_json.hpp"

namespace resourced::daemon::log {

SnapshotRow::SnapshotRow(Sequence after, const module::Snapshot& snapshot)
    : sequence(after), resources(snapshot.inventory.encode()), text(proto::encode_snapshot(snapshot)) {}

std::int64_t snapshot_sum(Sequence sequence, std::int64_t resources, std::string_view text) noexcept {
  return Checksum().add(static_cast<std::int64_t>(sequence)).add(resources).add(text).value();
}

SnapshotRows::SnapshotRows(Database& database)
    : put_(database, "INSERT OR REPLACE INTO snapshot(sequence, resources, text, sum) VALUES (?, ?, ?, ?)"),
      put_resources_(database, put_resource_set),
      trim_(
          database,
          "DELETE FROM snapshot WHERE sequence < (SELECT max(sequence) FROM snapshot WHERE sequence <= ?)") {}

void SnapshotRows::write(const SnapshotRow& row) {
  const auto sequence = static_cast<std::int64_t>(row.sequence);
  const std::int64_t resources = resource_set_id(row.resources);
  put_resources_.bind(1, resources).bind(2, std::string_view(row.resources)).bind(3, sequence).run();
  put_.bind(1, sequence)
      .bind(2, resources)
      .bind(3, std::string_view(row.text))
      .bind(4, snapshot_sum(row.sequence, resources, row.text))
      .run();
}

void SnapshotRows::trim(Sequence dropped) { trim_.bind(1, static_cast<std::int64_t>(dropped)).run(); }

}  // namespace resourced::daemon::log

#include "daemon/log/snapshot_rows.hpp"

#include "daemon/log/checksum.hpp"
#include "daemon/log/event_rows.hpp"
#include "proto/state_json.hpp"

namespace resourced::daemon::log {

SnapshotRow::SnapshotRow(Sequence after, const module::State& state)
    : sequence(after), text(proto::encode_state(state, documents)) {}

std::int64_t snapshot_sum(Sequence sequence, std::string_view text) noexcept {
  return Checksum().add(static_cast<std::int64_t>(sequence)).add(text).value();
}

SnapshotRows::SnapshotRows(Database& database)
    : put_(database, "INSERT OR REPLACE INTO snapshot(sequence, text, sum) VALUES (?, ?, ?)"),
      put_document_(database, put_document),
      put_need_(database, "INSERT OR IGNORE INTO snapshot_document(snapshot, document) VALUES (?, ?)"),
      trim_(database,
            "DELETE FROM snapshot WHERE sequence < (SELECT max(sequence) FROM snapshot WHERE sequence <= ?)"),
      trim_needs_(database,
                  "DELETE FROM snapshot_document WHERE snapshot NOT IN (SELECT sequence FROM snapshot)"),
      trim_documents_(
          database,
          "DELETE FROM document WHERE last <= ? AND name NOT IN (SELECT document FROM snapshot_document)") {}

void SnapshotRows::write(const SnapshotRow& row) {
  const auto sequence = static_cast<std::int64_t>(row.sequence);
  for (const auto& [name, text] : row.documents.texts()) {
    put_document_.bind(1, std::string_view(name)).bind(2, std::string_view(*text)).bind(3, sequence).run();
    put_need_.bind(1, sequence).bind(2, std::string_view(name)).run();
  }
  put_.bind(1, sequence)
      .bind(2, std::string_view(row.text))
      .bind(3, snapshot_sum(row.sequence, row.text))
      .run();
}

void SnapshotRows::trim(Sequence dropped) {
  const auto sequence = static_cast<std::int64_t>(dropped);
  trim_.bind(1, sequence).run();
  trim_needs_.run();
  trim_documents_.bind(1, sequence).run();
}

}  // namespace resourced::daemon::log

// The tables of the store and their versions. The upgrade recipe stands in docs/store.md.
#pragma once

#include <cstdint>

#include "daemon/log/records.hpp"
#include "daemon/log/sqlite.hpp"

namespace resourced::daemon::log {

/// Throws Error for a file that is not a store, does not have the tables of its version, or was written by a
/// newer version. Checks all of an older store, which is about to be upgraded. Changes nothing.
void check_schema(Database& database);

/// The version that this program writes.
[[nodiscard]] std::int64_t present_schema() noexcept;

/// Whether there are no tables at all: a new database.
[[nodiscard]] bool is_empty(Database& database);

/// Whether the database has the tables of the present version.
[[nodiscard]] bool has_present_schema(Database& database);

/// Whether the database has the tables of a version with a checksum of the present.
[[nodiscard]] bool has_present_sum(Database& database);

/// Makes the tables in an empty database, or brings older ones to the present version.
void prepare_schema(Database& database);

// The steps of an upgrade that SQL cannot express. They run in its transaction.

/// Copies the log of schemas 1 and 2, `event_2` and `event_host`, to the tables of schema 3. An event whose
/// text cannot be parsed is kept as damaged. Returns the last sequence, 0 for an empty log.
[[nodiscard]] Sequence upgrade_log(Database& database);

/// Assigns the state to targets: before version 3 it belonged to hosts. If a host has several ranks, the
/// targets are taken from the event log, if that is complete. Also removes run-time changes from the stored
/// inventory, so that it is the discovered one again. Throws Error EBADMSG for rows that cannot be read.
void name_targets(Database& database);

}  // namespace resourced::daemon::log

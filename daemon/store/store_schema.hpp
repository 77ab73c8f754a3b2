// The tables of the store and their versions. The upgrade recipe stands in docs/store.md.
#pragma once

#include "daemon/store/records.hpp"
#include "daemon/store/sqlite.hpp"

namespace resourced::daemon::store {

/// Throws Error for a file that is not a store, has other tables than were made, or was written by a newer
/// version. Looks through all of an older one, which is about to be upgraded. Changes nothing.
void check_schema(Database& database);

/// Whether there are no tables at all: a new database.
[[nodiscard]] bool is_empty(Database& database);

/// Whether the tables are there, in the version that is written now.
[[nodiscard]] bool has_present_schema(Database& database);

/// Whether the tables are there, in a version that has a checksum of the present.
[[nodiscard]] bool has_present_sum(Database& database);

/// Makes the tables in an empty database, or brings older ones to the present version.
void prepare_schema(Database& database);

// The steps of an upgrade that SQL cannot express. They run in its transaction.

/// Copies the log of schemas 1 and 2, `event_2` and `event_host`, to the tables of schema 3. An event whose
/// text no reader can take is kept as damaged. Returns the last sequence, 0 for an empty log.
[[nodiscard]] Sequence upgrade_log(Database& database);

/// Before version 3, state belonged to a host and an inventory was stored with what had changed at run time.
/// Where hosts stand for several ranks the event log tells which of their targets is meant, if it is whole;
/// the stored inventory is brought back to what was discovered. Throws Error EBADMSG for rows that cannot be
/// read.
void name_targets(Database& database);

}  // namespace resourced::daemon::store

// The tables of the store and their versions. The upgrade recipe stands in docs/store.md.
#pragma once

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

}  // namespace resourced::daemon::store

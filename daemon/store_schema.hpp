// The tables of the store and their versions. The upgrade recipe stands in docs/store.md.
#pragma once

#include "daemon/sqlite.hpp"

namespace resourced::daemon {

/// Throws Error for a file that is not a store, is damaged, or was written by a newer version. Changes
/// nothing.
void check_schema(Database& database);

/// Makes the tables in an empty database, or brings older ones to the present version.
void prepare_schema(Database& database);

}  // namespace resourced::daemon

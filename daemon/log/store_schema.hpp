// The tables of the store and their version. The recipe for a change stands in docs/store.md.
#pragma once

#include <cstdint>

#include "daemon/log/sqlite.hpp"

namespace resourced::daemon::log {

/// Checks the schema. Throws Error EINVAL for a file that is not a store, or is one of a version before 0.1.0
/// or of a later version, and EBADMSG for one that does not have the tables of its version. Changes nothing.
void check_schema(Database& database);

/// The schema version that this program reads and writes.
[[nodiscard]] std::int64_t present_schema() noexcept;

/// Whether the database has no tables at all, so that it is new.
[[nodiscard]] bool is_empty(Database& database);

/// Creates the tables in an empty database, and gives it a number of its own (store_number).
void prepare_schema(Database& database);

/// The number that tells this store from others, or from another copy of it. Throws Error EBADMSG if its row
/// is damaged.
[[nodiscard]] std::int64_t store_number(Database& database);
/// Gives the store another number.
void renew_number(Database& database);

}  // namespace resourced::daemon::log

// Brings the event log of schemas 1 and 2 to that of schema 3.
#pragma once

#include "daemon/record.hpp"
#include "daemon/sqlite.hpp"

namespace resourced::daemon {

/// Copies `event_2` and `event_host` to the tables of schema 3, within a transaction of the caller. An event
/// whose text is not what a reader can take is kept as damaged. Returns the last sequence, 0 for an empty
/// log.
[[nodiscard]] Sequence upgrade_log(Database& database);

}  // namespace resourced::daemon

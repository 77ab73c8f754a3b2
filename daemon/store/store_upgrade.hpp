// The steps of an upgrade that SQL cannot express. They run in its transaction.
#pragma once

#include "daemon/store/record.hpp"
#include "daemon/store/sqlite.hpp"

namespace resourced::daemon::store {

/// Copies the log of schemas 1 and 2, `event_2` and `event_host`, to the tables of schema 3. An event whose
/// text no reader can take is kept as damaged. Returns the last sequence, 0 for an empty log.
[[nodiscard]] Sequence upgrade_log(Database& database);

/// Before version 3, state belonged to a host and an inventory was stored with what had changed at run time.
/// Where hosts stand for several ranks the event log tells which of their targets is meant, if it is whole;
/// the stored inventory is brought back to what was discovered. Throws Error EBADMSG for rows that cannot be
/// read.
void name_targets(Database& database);

}  // namespace resourced::daemon::store

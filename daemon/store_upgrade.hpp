// The steps of an upgrade that SQL cannot express. They run in its transaction.
#pragma once

#include "daemon/sqlite.hpp"

namespace resourced::daemon {

/// Before version 3, state belonged to a host and an inventory was stored with what had changed at run time.
/// Where hosts stand for several ranks the event log tells which of their targets is meant, if it is whole;
/// the stored inventory is brought back to what was discovered. Throws Error EBADMSG for rows that cannot be
/// read.
void name_targets(Database& database);

}  // namespace resourced::daemon

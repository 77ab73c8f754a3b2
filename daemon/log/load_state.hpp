// Reads the tables of the present of a store (engine::TableChanges).
#pragma once

#include "core/module/command.hpp"
#include "daemon/log/sqlite.hpp"

namespace resourced::daemon::log {

/// The database has the present schema. Throws Error EBADMSG for a row that no daemon writes.
[[nodiscard]] module::RecordedState load_state(Database& database);

}  // namespace resourced::daemon::log

// The commands that serve nothing: --check and --import.
#pragma once

#include "daemon/options.hpp"

namespace resourced::daemon {

/// Prints what would be served. Throws Error if the configuration or the inventory is not right.
void check(const Options& options);

/// Takes an event log into a new store and says what came of it. Throws Error that names the line.
void import_log(const Options& options);

}  // namespace resourced::daemon

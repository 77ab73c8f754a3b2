// What the program does: serve, or one of the commands that serve nothing.
#pragma once

#include "daemon/options.hpp"

namespace resourced::daemon {

/// Runs until SIGTERM or SIGINT (returns 0) or until the store fails (returns 1): configuration, store,
/// transports and service around one loop. Throws Error if it cannot start.
int run(const Options& options);

/// Prints what would be served. Throws Error if the configuration or the inventory is not right.
void check(const Options& options);

/// Takes an event log into a new store and says what came of it. Throws Error that names the line.
void import_log(const Options& options);

}  // namespace resourced::daemon

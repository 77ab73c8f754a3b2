// The daemon as a whole: configuration, store, transports and service around one loop, from start to end.
#pragma once

#include "daemon/options.hpp"

namespace resourced::daemon {

/// Runs until SIGTERM or SIGINT (returns 0) or until the store fails (returns 1).
/// Throws Error if it cannot start.
int run(const Options& options);

}  // namespace resourced::daemon

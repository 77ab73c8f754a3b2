// The resource module of a Flux instance on rank 0: the service behind the keeper (flux/keeper), with its
// state in the instance's KVS.
#pragma once

namespace resourced::daemon::instance {

/// Runs the module until the broker unloads it, or the keeper has ended. Returns the exit status of the
/// process. The keeper passes the channel and the welcome in the environment. Throws Error without them.
[[nodiscard]] int run();

}  // namespace resourced::daemon::instance

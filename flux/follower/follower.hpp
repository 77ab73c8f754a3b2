// The resource module of a Flux instance on ranks above 0: it verifies its node, reports its resources
// upstream, and serves its topology. Rank 0 makes all changes of the state of targets.
#pragma once

#include "flux/module/channel.hpp"
#include "flux/module/welcome.hpp"

namespace resourced::flux::follower {

/// Runs until the module is asked to stop, or the keeper has ended. Returns the exit status of the process.
[[nodiscard]] int run(module::Channel& channel, const module::Welcome& welcome);

}  // namespace resourced::flux::follower

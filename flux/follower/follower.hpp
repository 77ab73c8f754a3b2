// The resource module of a Flux instance on ranks above 0: it verifies its node, reports it upward, and
// answers for its topology. All that changes the state of targets is on rank 0.
#pragma once

#include "flux/module/channel.hpp"
#include "flux/module/welcome.hpp"

namespace resourced::flux::follower {

/// Until the module is told to stop, or the keeper has gone. Exit status of the process.
[[nodiscard]] int run(module::Channel& channel, const module::Welcome& welcome);

}  // namespace resourced::flux::follower

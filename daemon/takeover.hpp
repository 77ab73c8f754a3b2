// States that a daemon inherits at its start: from its former process, or from the former leader of its
// cluster.
#pragma once

#include <optional>

#include "core/module/state.hpp"
#include "core/rset/resource_set.hpp"
#include "core/time.hpp"

namespace resourced::daemon {

/// How long a daemon on its own that restarts keeps the nodes online that were so: `grace`, or 0 if
/// `watched`, the time at which it last watched node agents, is unknown or more than `grace` ago. That time
/// may be older than the end of the former process by `interval`.
[[nodiscard]] Seconds grace_at_restart(std::optional<WallTime> watched, WallTime now, Seconds grace,
                                       Seconds interval);

/// The targets of `next` that were online and not torpid.
[[nodiscard]] text::IdSet online_before(const module::State& states, const rset::ResourceSet& next);

}  // namespace resourced::daemon

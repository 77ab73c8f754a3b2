// States that a daemon inherits at its start: from its former process, or from the previous leader of its
// cluster.
#pragma once

#include <optional>

#include "core/module/state.hpp"
#include "core/rset/resource_set.hpp"
#include "core/time.hpp"

namespace resourced::daemon {

/// Returns how long a daemon on its own that restarts keeps nodes online that were online: `grace`, or 0 if
/// `watched`, the time at which it last watched node agents, is unknown or more than `grace` and `interval`
/// ago. The former process may have ended up to `interval` after that time.
[[nodiscard]] Seconds grace_at_restart(std::optional<WallTime> watched, WallTime now, Seconds grace,
                                       Seconds interval);

/// Returns the targets of `next` that were online and not torpid.
[[nodiscard]] text::IdSet online_before(const module::State& states, const rset::ResourceSet& next);

}  // namespace resourced::daemon

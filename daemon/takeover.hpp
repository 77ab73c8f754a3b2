// What a daemon that takes over from another one of its cluster keeps of the states under that one.
#pragma once

#include <optional>

#include "core/module/snapshot.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::daemon::log {
class Store;
}

namespace resourced::daemon {

/// The states after the last event of a store that has not been started. Nothing, with a line of the log, if
/// they cannot be read.
[[nodiscard]] std::optional<module::Snapshot> last_states(log::Store& store);

/// The targets of `next` that were online and not torpid.
[[nodiscard]] text::IdSet online_before(const module::Snapshot& states, const rset::ResourceSet& next);

}  // namespace resourced::daemon

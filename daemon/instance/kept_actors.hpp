// Reads the actors that have drained the targets of a Flux instance. The instance's event log and checkpoint
// stay as Flux's own module writes them, so the actors have a separate key in the KVS, `resourced.actors`:
// the drains that have an actor, and all undrains, as the lines of an event log with `by`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/module/drain_table.hpp"
#include "daemon/instance/kept_state.hpp"

namespace resourced::daemon::instance {

struct KeptActors {
  /// The drains with their actors; a drain that another module has made has none.
  std::vector<module::DrainGroup> drains;
  /// The text that replaces the value of the key, if that has entries besides the present drains.
  std::optional<std::string> rewritten;
};

/// Adds the actors in the value of the key to the present drains. Throws Error EINVAL or EPROTO for a line
/// that is not an event.
[[nodiscard]] KeptActors read_kept_actors(std::string_view log, const std::vector<module::DrainGroup>& drains,
                                          const Brokers& brokers);

}  // namespace resourced::daemon::instance

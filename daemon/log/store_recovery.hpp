// Gives up the last events of a store whose log cannot be read to its end (`resourced --recover-to N`).
#pragma once

#include <string>
#include <vector>

#include "daemon/log/records.hpp"

namespace resourced::daemon::log {

struct Recovered {
  /// Each event that was given up, in order, as a line for people: what it was, as far as it can be read.
  std::vector<std::string> lost;
  /// The path of the store as it was before.
  std::string kept;
};

/// Removes the events after `last` from the store of a state directory, and gives it a new number. Locks the
/// directory meanwhile. Throws Error that names the file, and then changes nothing: ENOENT if there is no
/// store, EINVAL if it has no events after `last` or no state at it, EEXIST if an earlier recovery has left
/// its store there, EBADMSG if the log does not lead to a state after `last`.
[[nodiscard]] Recovered recover_store(const std::string& directory, Sequence last);

}  // namespace resourced::daemon::log

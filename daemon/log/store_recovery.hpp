// Gives up the last events of a store whose log cannot be read to its end (`resourced --recover-to N`), or
// goes back to a backup of it (`resourced --recover-to FILE`).
#pragma once

#include <string>
#include <vector>

#include "daemon/log/records.hpp"

namespace resourced::daemon::log {

struct Recovered {
  /// The last event of the store.
  Sequence last = 0;
  /// Each event that was given up, in order, as a line for people: what it was, as far as it can be read.
  std::vector<std::string> lost;
  /// The path of the store as it was before; empty if there was none.
  std::string kept;
};

/// Removes the events after `last` from the store of a state directory, and gives it a new number. Locks the
/// directory meanwhile. Throws Error that names the file, and then changes nothing: ENOENT if there is no
/// store, EINVAL if it has no state at `last`, or no later events and has had none by the lock file, EEXIST
/// if an earlier recovery has left its store there, EBADMSG if the log does not lead to a state after `last`.
[[nodiscard]] Recovered recover_store(const std::string& directory, Sequence last);

/// Puts a copy of a backup (backup_store()) in the place of the store of a state directory, which may have
/// none, with a new number. Locks the directory meanwhile. Throws what recover_store() does.
[[nodiscard]] Recovered restore_store(const std::string& directory, const std::string& backup);

}  // namespace resourced::daemon::log

// Reads the recorded state without a daemon, for `resourced --check`.
#pragma once

#include <optional>
#include <string>

#include "core/module/command.hpp"

namespace resourced::daemon::store {

/// Reads a copy of the store, so that nothing in the state directory changes, whatever version or state it is
/// in. Beside a running daemon the copy is as of one of its commits. Nothing if there is none. Throws Error
/// that names the file: EBUSY while a daemon of schema 1 or 2 has it or it cannot be read beside the one that
/// runs, and as Store does.
[[nodiscard]] std::optional<RecordedState> peek_store(const std::string& directory);

}  // namespace resourced::daemon::store

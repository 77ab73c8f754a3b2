// Where a daemon and its clients meet, and where the daemon keeps its state, when no option says so. The
// environment and the file system come in as functions, so that the choice can be tested.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace resourced::proto {

/// The value of an environment variable; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// Whether a file exists at a path.
using FileExists = std::function<bool(const std::string& path)>;

// A directory that is empty or not absolute counts as not set, as the XDG base directory specification
// demands. Of several, separated by colons, as systemd sets them, the first counts.

/// The daemon's sockets: $RUNTIME_DIRECTORY, else $XDG_RUNTIME_DIR/resourced, else /run/resourced.
[[nodiscard]] std::string runtime_directory(const Environment& environment);
/// ipc://DIR/bus of runtime_directory().
[[nodiscard]] std::string default_bus_uri(const Environment& environment);
/// local://DIR/local of runtime_directory().
[[nodiscard]] std::string default_local_uri(const Environment& environment);

/// Where a client connects: $RESOURCED_URI as it is, else the first bus that exists in $RUNTIME_DIRECTORY,
/// $XDG_RUNTIME_DIR/resourced and /run/resourced; if there is none yet, default_bus_uri(). So a user's own
/// daemon comes before the system's, and a login session (which has $XDG_RUNTIME_DIR) still finds the latter.
[[nodiscard]] std::string client_bus_uri(const Environment& environment, const FileExists& exists);

/// The daemon's state: $STATE_DIRECTORY, else $XDG_STATE_HOME/resourced, else $HOME/.local/state/resourced.
/// Error EINVAL that names the variables if none is set.
[[nodiscard]] std::string state_directory(const Environment& environment);

}  // namespace resourced::proto

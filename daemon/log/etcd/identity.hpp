// The name of the cluster that a state directory belongs to, in a file beside the store: the events of
// another cluster, or of a daemon on its own, must not become part of a log that others follow.
#pragma once

#include <optional>
#include <string>

namespace resourced::daemon::log::etcd {

/// The name of the file in a state directory.
inline constexpr const char* identity_file = "resourced.cluster";

/// Reads the name; nothing if the directory belongs to no cluster. Throws Error that names a file that cannot
/// be read.
[[nodiscard]] std::optional<std::string> read_identity(const std::string& directory);
/// Writes the name, which is on disk when this returns. Throws Error that names the file.
void write_identity(const std::string& directory, const std::string& cluster);
/// Removes the name from disk; returns whether there was one. Throws Error that names the file.
bool remove_identity(const std::string& directory);

/// Returns a new name of 128 random bits.
[[nodiscard]] std::string random_name();

}  // namespace resourced::daemon::log::etcd

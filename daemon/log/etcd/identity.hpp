// The cluster that a state directory belongs to, in a file beside the store: the events of another cluster,
// or of a daemon on its own, must not become part of a log that others follow.
#pragma once

#include <optional>
#include <string>

namespace resourced::daemon::log::etcd {

/// Its name in a state directory.
inline constexpr const char* identity_file = "resourced.cluster";

/// Nothing if the directory belongs to no cluster. Throws Error that names a file that cannot be read.
[[nodiscard]] std::optional<std::string> read_identity(const std::string& directory);
/// On disk when this returns. Throws Error that names the file.
void write_identity(const std::string& directory, const std::string& cluster);
/// The same; returns whether there was one.
bool remove_identity(const std::string& directory);

/// A new name, of 128 random bits.
[[nodiscard]] std::string random_name();

}  // namespace resourced::daemon::log::etcd

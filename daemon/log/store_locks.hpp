// Finds other processes that have locks on the files of a store.
#pragma once

#include <string>

namespace resourced::daemon::log {

/// The use that another process makes of a store in write-ahead mode.
enum class StoreUse { writes, reads };

/// Names another process that uses a store in this way, for people: `process 123 (sqlite3)`, or `another
/// program` if the kernel names none. `path` is that of the database file. Opens none of the files: to close
/// one would release the locks of this process (fcntl(2)).
[[nodiscard]] std::string user_of_store(const std::string& path, StoreUse use);

}  // namespace resourced::daemon::log

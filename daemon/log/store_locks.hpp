// Other processes that have locks on the files of a store.
#pragma once

#include <string>

namespace resourced::daemon::log {

/// What another process does with a store in write-ahead mode.
enum class StoreUse { writes, reads };

/// A process of another kind that uses a store so, for people: `process 123 (sqlite3)`, or `another program`
/// if the kernel names none. `path` is that of the database file. Opens none of the files: the locks of this
/// process would end when it closes them (fcntl(2)).
[[nodiscard]] std::string user_of_store(const std::string& path, StoreUse use);

}  // namespace resourced::daemon::log

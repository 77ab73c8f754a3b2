// A copy of the present state of a store, for a member of a cluster that has not followed the log: a store
// whose log has its last event alone, and the snapshot after it. The past is not copied.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/module/state.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/sqlite.hpp"

namespace resourced::os {
class Descriptor;
}

namespace resourced::daemon::log {

struct CopiedStore {
  /// The last event of the copy.
  Sequence sequence = 0;
  std::size_t bytes = 0;
  /// The open file of the copy, which has no name any more.
  std::shared_ptr<const os::Descriptor> file;

  /// Reads `size` bytes from this offset. Throws Error if the file ends before.
  [[nodiscard]] std::string read(std::size_t offset, std::size_t size) const;
};

/// Copies the event `last` of a store, with the state after it. Writes to `path`, which is replaced. Throws
/// Error as Database does, EFBIG if the copy is larger than `most_bytes`, and EBADMSG if the event is
/// damaged.
[[nodiscard]] CopiedStore copy_store(Database& source, Sequence last, const module::State& state,
                                     const std::string& path, std::size_t most_bytes);

}  // namespace resourced::daemon::log

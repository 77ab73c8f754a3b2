// Puts a store from another member (store_copy.hpp) in the place of the store of a state directory. A crash
// at any time leaves one or the other, whole.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "daemon/log/records.hpp"

namespace resourced::os {
class Descriptor;
}

namespace resourced::daemon::log {

/// Paths of files beside the store, which a crash may leave behind: a copy while it is made, and a store that
/// is being received.
[[nodiscard]] std::string copy_path(const std::string& store_path);
[[nodiscard]] std::string incoming_path(const std::string& store_path);
/// Removes the files of copy_path() and incoming_path(). Requires the lock of the state directory.
void remove_leftovers(const std::string& store_path);

/// The file of a store that is received in pieces. Requires the lock of the state directory.
class IncomingStore {
 public:
  /// Creates an empty file. Throws Error that names it, as append() does.
  explicit IncomingStore(const std::string& directory);
  void append(std::string_view bytes);

 private:
  std::string path_;
  std::shared_ptr<const os::Descriptor> file_;
};

/// Replaces the store, which must be closed, by the file of an IncomingStore, which must end with event
/// `last`. Throws Error that names a file, and leaves the old store in place, if the new one is damaged or of
/// a newer version.
void install_store(const std::string& directory, Sequence last);

}  // namespace resourced::daemon::log

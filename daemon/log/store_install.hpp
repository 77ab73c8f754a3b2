// Puts a store that comes from elsewhere (store_copy.hpp) in the place of the store of a state directory. A
// crash at any time leaves one or the other, whole.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "daemon/log/records.hpp"

namespace resourced::os {
class Descriptor;
}

namespace resourced::daemon::log {

/// Files beside the store: a copy while it is made, and another store while it comes. They are left behind by
/// a crash.
[[nodiscard]] std::string copy_path(const std::string& store_path);
[[nodiscard]] std::string incoming_path(const std::string& store_path);
/// Removes them. Requires the lock of the state directory.
void remove_leftovers(const std::string& store_path);

/// The file of a store that comes in pieces. Requires the lock of the state directory.
class IncomingStore {
 public:
  /// Begins an empty file. Throws Error that names it, as append() does.
  explicit IncomingStore(const std::string& directory);
  void append(std::string_view bytes);

 private:
  std::string path_;
  std::shared_ptr<const os::Descriptor> file_;
};

/// Takes the file of an IncomingStore, which ends with event `last`, in place of the store, which must be
/// closed. Throws Error that names a file, and leaves the store that was there, if that file is damaged, or
/// of a newer version.
void install_store(const std::string& directory, Sequence last);

}  // namespace resourced::daemon::log

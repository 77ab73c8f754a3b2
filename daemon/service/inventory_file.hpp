// Reads the R of a resource.reload on a thread of its own: a file may be large, and on a network file system
// a read may never return. Such a file is dropped with its request and keeps its thread; other files can
// still be read, until max_threads threads are in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/service/deferral.hpp"

namespace resourced::daemon::service {

class InventoryFile {
 public:
  using Result = std::variant<rset::ResourceSet, Error>;
  using Done = std::function<void(Result)>;
  /// Reads the file at a path. Called on a thread of its own.
  using Read = std::function<Result(const std::string&)>;
  /// Maximum number of files that are being read, dropped ones included.
  static constexpr std::size_t max_threads = 4;

  explicit InventoryFile(Deferral& deferral, Read read = read_inventory);
  /// Does not wait for a file that is being read, and drops its result.
  ~InventoryFile();
  InventoryFile(const InventoryFile&) = delete;
  InventoryFile& operator=(const InventoryFile&) = delete;
  InventoryFile(InventoryFile&&) = delete;
  InventoryFile& operator=(InventoryFile&&) = delete;

  /// Returns whether a file is being read and its result is still wanted.
  [[nodiscard]] bool busy() const noexcept { return busy_; }
  /// Reads a file. The loop calls `done` with an R that has targets, or an Error that names the file: the
  /// errno of the system, EINVAL if the path is not a regular file or the text not an R, EFBIG if it is too
  /// large. Requires !busy(). Throws Error EBUSY while max_threads files are being read, EAGAIN when the
  /// system has no thread for it now.
  void read(const std::string& path, Done done) { read(path, std::move(done), read_); }
  /// Reads a file with `read` instead of the constructor's function, otherwise as above.
  void read(const std::string& path, Done done, const Read& read);
  /// Drops the result of the file that is being read.
  void drop() noexcept { busy_ = false; }

 private:
  /// The default `read`: reads and parses a file.
  static Result read_inventory(const std::string& path);

  struct Link;
  /// Shared with the thread, which may outlive this object.
  std::shared_ptr<Link> link_;
  Read read_;
  bool busy_ = false;
  /// Number of the last file; results of earlier files are dropped.
  std::uint64_t last_ = 0;
};

}  // namespace resourced::daemon::service

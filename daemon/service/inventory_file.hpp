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

namespace resourced::daemon::service {

class InventoryFile {
 public:
  /// Runs a function on the loop; may be called from any thread.
  using Post = std::function<void(std::function<void()>)>;
  using Result = std::variant<rset::ResourceSet, Error>;
  using Done = std::function<void(Result)>;
  /// Reads the file at a path; called by a thread of its own.
  using Read = std::function<Result(const std::string&)>;
  /// The most files that are being read, dropped ones included.
  static constexpr std::size_t max_threads = 4;

  explicit InventoryFile(Post post, Read read = read_inventory);
  /// Does not wait for a file that is being read; its result is dropped.
  ~InventoryFile();
  InventoryFile(const InventoryFile&) = delete;
  InventoryFile& operator=(const InventoryFile&) = delete;
  InventoryFile(InventoryFile&&) = delete;
  InventoryFile& operator=(InventoryFile&&) = delete;

  /// Whether a file is being read whose result is still wanted.
  [[nodiscard]] bool busy() const noexcept { return busy_; }
  /// `done` is called by the loop, with an R that has targets, or an Error that names the file: the errno of
  /// the system, EINVAL if the path is not a regular file or the text not an R, EFBIG if it is too large.
  /// Requires !busy(). Throws Error EBUSY while max_threads files are being read, EAGAIN when the system has
  /// no thread for it now.
  void read(const std::string& path, Done done) { read(path, std::move(done), read_); }
  /// The same, but reads with `read` instead of the function of the constructor.
  void read(const std::string& path, Done done, const Read& read);
  /// Drops the result of the file that is being read.
  void drop() noexcept { busy_ = false; }

 private:
  /// Reads and parses a file: the default `read`.
  static Result read_inventory(const std::string& path);

  struct Link;
  /// Shared with the thread, which may outlive this.
  std::shared_ptr<Link> link_;
  Read read_;
  bool busy_ = false;
  /// The number of the last file; results of earlier ones are dropped.
  std::uint64_t last_ = 0;
};

}  // namespace resourced::daemon::service

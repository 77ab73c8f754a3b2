// Reads an R that an operator names (resource.reload) on a thread of its own: a file may be large, and one on
// a network file system may take for ever.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::daemon {

class InventoryFile {
 public:
  /// Has the loop do something; may be called from any thread.
  using Post = std::function<void(std::function<void()>)>;
  using Done = std::function<void(std::variant<ResourceSet, Error>)>;

  explicit InventoryFile(Post post);
  /// Does not wait for a file that is being read: nothing comes of it.
  ~InventoryFile();
  InventoryFile(const InventoryFile&) = delete;
  InventoryFile& operator=(const InventoryFile&) = delete;
  InventoryFile(InventoryFile&&) = delete;
  InventoryFile& operator=(InventoryFile&&) = delete;

  [[nodiscard]] bool busy() const noexcept { return busy_; }
  /// `done` is called by the loop, with an R that has targets, or an Error that names the file: its errno,
  /// EINVAL for what is not a regular file or not an R, EFBIG. Requires that no other file is being read.
  void read(const std::string& path, Done done);

 private:
  struct Link;
  /// Shared with the thread, which may outlive this.
  std::shared_ptr<Link> link_;
  bool busy_ = false;
};

}  // namespace resourced::daemon

#include "daemon/service/inventory_file.hpp"

#include <cerrno>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/text/node_name.hpp"
#include "os/file.hpp"
#include "os/thread.hpp"

namespace resourced::daemon::service {

using rset::ResourceSet;

struct InventoryFile::Link {
  std::mutex mutex;
  /// Null once the InventoryFile is destroyed, which drops the result.
  Deferral* deferral;
  std::size_t threads = 0;
};

InventoryFile::Result InventoryFile::read_inventory(const std::string& path) {
  std::string text;
  try {
    text = os::read_file(path, ResourceSet::max_text);
  } catch (const Error& error) {
    return error;
  }
  try {
    ResourceSet resources = ResourceSet::parse(text);
    if (resources.empty()) throw Error(EINVAL, "execution.R_lite: no ranks");
    text::check_node_names(resources.nodelist());
    return resources;
  } catch (const Error& error) {
    return Error(error.errnum(), fmt::format("{}: {}", path, error.what()));
  }
}

namespace {

/// Turns exceptions into an Error: on this thread they would end the daemon.
InventoryFile::Result result_of(const InventoryFile::Read& read, const std::string& path) {
  try {
    return read(path);
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(EINVAL, fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace

InventoryFile::InventoryFile(Deferral& deferral, Read read)
    : link_(std::make_shared<Link>()), read_(std::move(read)) {
  link_->deferral = &deferral;
}

InventoryFile::~InventoryFile() {
  const std::lock_guard lock(link_->mutex);
  link_->deferral = nullptr;
}

void InventoryFile::read(const std::string& path, Done done, const Read& read) {
  const std::lock_guard lock(link_->mutex);
  if (link_->threads >= max_threads) {
    throw Error(EBUSY, fmt::format("{} files for resource.reload are still being read", link_->threads));
  }
  const std::uint64_t number = last_ + 1;
  try {
    // The thread is detached, as the read may never return.
    os::start_thread([this, link = link_, read, path, number, done = std::move(done)]() mutable {
      auto result = std::make_shared<Result>(result_of(read, path));
      const std::lock_guard ended(link->mutex);
      --link->threads;
      if (link->deferral == nullptr) return;
      link->deferral->post("resource.reload", [this, number, done = std::move(done), result] {
        if (number != last_ || !std::exchange(busy_, false)) return;
        done(std::move(*result));
      });
    });
  } catch (const std::system_error& error) {
    throw Error(EAGAIN, fmt::format("{}: cannot start a thread to read it: {}", path, error.what()));
  }
  ++link_->threads;
  last_ = number;
  busy_ = true;
}

}  // namespace resourced::daemon::service

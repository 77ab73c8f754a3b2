#include "daemon/inventory_file.hpp"

#include <cerrno>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "config/file.hpp"

namespace resourced::daemon {

struct InventoryFile::Link {
  std::mutex mutex;
  /// Empty once the InventoryFile is destroyed: the result is dropped then.
  Post post;
};

namespace {

std::variant<ResourceSet, Error> load(const std::string& path) {
  std::string text;
  try {
    text = config::read_file(path, ResourceSet::max_text);
  } catch (const Error& error) {
    return error;
  }
  try {
    ResourceSet resources = ResourceSet::parse(text);
    if (resources.empty()) throw Error(EINVAL, "execution.R_lite: no ranks");
    return resources;
  } catch (const Error& error) {
    return Error(error.errnum(), fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace

InventoryFile::InventoryFile(Post post) : link_(std::make_shared<Link>()) { link_->post = std::move(post); }

InventoryFile::~InventoryFile() {
  const std::lock_guard lock(link_->mutex);
  link_->post = nullptr;
}

void InventoryFile::read(const std::string& path, Done done) {
  busy_ = true;
  // Not joined, as it may never end.
  std::thread([this, link = link_, path, done = std::move(done)]() mutable {
    auto result = std::make_shared<std::variant<ResourceSet, Error>>(load(path));
    const std::lock_guard lock(link->mutex);
    if (!link->post) return;
    link->post([this, done = std::move(done), result] {
      busy_ = false;
      done(std::move(*result));
    });
  }).detach();
}

}  // namespace resourced::daemon

#include "daemon/store_peek.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.hpp"
#include "daemon/state_lock.hpp"
#include "daemon/store.hpp"
#include "daemon/store_writer.hpp"

namespace resourced::daemon {
namespace {

namespace fs = std::filesystem;

class PrivateDirectory {
 public:
  PrivateDirectory() : path_((fs::temp_directory_path() / "resourced-check-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw Error(errno, fmt::format("{}: {}", path_, std::strerror(errno)));
    }
  }
  ~PrivateDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;
  PrivateDirectory(PrivateDirectory&&) = delete;
  PrivateDirectory& operator=(PrivateDirectory&&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

[[noreturn]] void fail(const std::string& path) {
  throw Error(errno, fmt::format("{}: {}", path, std::strerror(errno)));
}

// Keeps a daemon from starting meanwhile. One of schema 1 or 2 has locked ranges of the database file instead
// (fcntl(2)).
class SharedLock {
 public:
  SharedLock(const std::string& lock_path, const std::string& store)
      : descriptor_(::open(lock_path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0 && errno != ENOENT) fail(lock_path);
    if (descriptor_ >= 0 && ::flock(descriptor_, LOCK_SH | LOCK_NB) != 0) {
      ::close(descriptor_);
      refuse(store);
    }
    const int file = ::open(store.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) fail(store);
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    const bool is_locked = ::fcntl(file, F_GETLK, &range) == 0 && range.l_type != F_UNLCK;
    ::close(file);
    if (is_locked) refuse(store);
  }
  ~SharedLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
  SharedLock(SharedLock&&) = delete;
  SharedLock& operator=(SharedLock&&) = delete;

 private:
  [[noreturn]] static void refuse(const std::string& store) {
    throw Error(EBUSY, fmt::format("{}: in use by a running resourced", store));
  }

  int descriptor_;
};

}  // namespace

std::optional<RecordedState> peek_store(const std::string& directory) {
  const std::string path = (fs::path(directory) / store_file).string();
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const std::string lock_path = (fs::path(directory) / lock_file).string();
  const SharedLock lock(lock_path, path);
  const PrivateDirectory copy;
  const std::string copied = (fs::path(copy.path()) / store_file).string();
  for (const char* suffix : {"", "-wal"}) {
    if (fs::exists(path + suffix, error)) fs::copy_file(path + suffix, copied + suffix, error);
    if (error) throw Error(error.value(), fmt::format("{}{}: {}", path, suffix, error.message()));
  }
  // The lock file tells whether commits are missing.
  if (fs::exists(lock_path, error)) fs::copy_file(lock_path, fs::path(copy.path()) / lock_file, error);
  try {
    return StoreWriter(copied).load();
  } catch (const Error& defect) {
    std::string text = defect.what();
    if (const auto at = text.find(copied); at != std::string::npos) text.replace(at, copied.size(), path);
    throw Error(defect.errnum(), text);
  }
}

}  // namespace resourced::daemon

// Reads a store without a daemon, for `resourced --check`, `--export` and `--backup`.

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.hpp"
#include "daemon/log/complete_log.hpp"
#include "daemon/log/past_reader.hpp"
#include "daemon/log/sqlite.hpp"
#include "daemon/log/state_lock.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_writer.hpp"
#include "os/file.hpp"

namespace resourced::daemon::log {
namespace {

namespace fs = std::filesystem;

class PrivateDirectory {
 public:
  PrivateDirectory() : path_((fs::temp_directory_path() / "resourced-check-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) os::fail(path_, errno);
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

// A shared lock of the state directory, which keeps a daemon from starting. It is not taken beside a running
// daemon.
class SharedLock {
 public:
  explicit SharedLock(const std::string& lock_path)
      : descriptor_(::open(lock_path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_.get() < 0 && errno != ENOENT) os::fail(lock_path, errno);
    is_running_ = descriptor_.get() >= 0 && ::flock(descriptor_.get(), LOCK_SH | LOCK_NB) != 0;
  }

  /// Whether a daemon has locked the state directory.
  [[nodiscard]] bool is_running() const noexcept { return is_running_; }

 private:
  os::Descriptor descriptor_;
  bool is_running_ = false;
};

void copy_file(const std::string& from, const std::string& to) {
  std::error_code error;
  if (fs::exists(from, error)) fs::copy_file(from, to, error);
  if (error) throw Error(error.value(), fmt::format("{}: {}", from, error.message()));
}

void copy_running(const std::string& path, const std::string& copied) {
  try {
    Database store(path, Database::Access::read);
    store.execute("PRAGMA busy_timeout=2000");
    Database(copied).copy_from(store);
  } catch (const Error& error) {
    if (error.errnum() == EBADMSG) throw;
    throw Error(EBUSY, fmt::format("{}: in use by a running resourced, and cannot be read meanwhile ({})",
                                   path, error.what()));
  }
}

}  // namespace

bool read_copy(const std::string& directory, const std::function<void(StoreWriter&)>& read) {
  const std::string path = (fs::path(directory) / store_file).string();
  check_store_files(path);
  std::error_code error;
  const bool is_there = fs::exists(path, error);
  if (error) os::fail(path, error.value());
  check_not_lost(path);
  if (!is_there) return false;
  const std::string lock_path = (fs::path(directory) / lock_file).string();
  const SharedLock lock(lock_path);
  const PrivateDirectory copy;
  const std::string copied = (fs::path(copy.path()) / store_file).string();
  // The lock file tells whether commits are missing. It is copied first, as a running daemon writes to it
  // after each commit: copied last, it could name a commit that the copy of the store does not have.
  copy_file(lock_path, (fs::path(copy.path()) / lock_file).string());
  if (lock.is_running()) {
    copy_running(path, copied);
  } else {
    copy_file(path, copied);
    copy_file(path + "-wal", copied + "-wal");
  }
  try {
    StoreWriter writer(copied);
    read(writer);
    return true;
  } catch (const Error& defect) {
    // Operators know the files by their own names, and not by those of the copy.
    std::string text = defect.what();
    for (auto at = text.find(copy.path()); at != std::string::npos; at = text.find(copy.path()))
      text.replace(at, copy.path().size(), directory);
    throw Error(defect.errnum(), text);
  }
}

Backup backup_store(const std::string& directory, const std::string& file) {
  if (fs::exists(file)) throw Error(EEXIST, fmt::format("{}: is there already, and is not replaced", file));
  const std::string part = file + ".part";
  const os::Descriptor created(
      ::open(part.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (created.get() < 0 && errno == EEXIST) {
    throw Error(EEXIST, fmt::format("{}: is of another backup; remove it if none is being made there", part));
  }
  if (created.get() < 0) os::fail(part, errno);
  Backup backup;
  try {
    const bool is_there = read_copy(directory, [&](StoreWriter& store) {
      backup.last = store.last_sequence();
      write_complete(store, [](const std::string& /*lines*/) {});
      Database copy(part);
      copy.copy_from(store.database());
      // Switch the write-ahead log off: the backup is one file.
      copy.execute("PRAGMA journal_mode=DELETE");
    });
    if (!is_there) throw Error(ENOENT, fmt::format("{}: there is no store", directory));
    if (::fsync(created.get()) != 0) os::fail(part, errno);
    backup.bytes = fs::file_size(part);
    fs::rename(part, file);
  } catch (...) {
    std::error_code ignored;
    fs::remove(part, ignored);
    throw;
  }
  return backup;
}

std::optional<PeekedStore> peek_store(const std::string& directory) {
  std::optional<PeekedStore> peeked;
  (void)read_copy(directory, [&](StoreWriter& store) {
    StoreReader reader(store.database(), store.hosts());
    peeked =
        PeekedStore{PastReader(store.database(), reader).last_states(), reader.last_timestamp().timestamp};
  });
  return peeked;
}

}  // namespace resourced::daemon::log

#include "daemon/log/state_lock.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "os/file.hpp"

namespace resourced::daemon::log {
namespace {

// The head always has the same size, so that a later write replaces an earlier one as a whole.
constexpr const char* head_format = "store %016" PRIx64 " sequence %020" PRIu64 "\n";
constexpr std::size_t head_size = 53;
// The line after the head.
constexpr const char* watched_format = "watched %020" PRId64 "\n";
constexpr std::size_t watched_size = 29;

std::optional<StateLock::Head> read_head(int descriptor) {
  std::array<char, head_size + 1> text{};
  if (::pread(descriptor, text.data(), head_size, 0) != static_cast<ssize_t>(head_size)) return std::nullopt;
  std::uint64_t store = 0;
  StateLock::Head head;
  if (std::sscanf(text.data(), "store %16" SCNx64 " sequence %20" SCNu64, &store, &head.sequence) != 2)
    return std::nullopt;
  head.store = static_cast<std::int64_t>(store);
  return head;
}

std::optional<WallTime> read_watched(int descriptor) {
  std::array<char, watched_size + 1> text{};
  std::int64_t seconds = 0;
  if (::pread(descriptor, text.data(), watched_size, head_size) != static_cast<ssize_t>(watched_size) ||
      std::sscanf(text.data(), "watched %20" SCNd64, &seconds) != 1)
    return std::nullopt;
  return wall_time(static_cast<double>(seconds));
}

// Whether a path still leads to the open file.
bool is_named(int descriptor, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

void check_store_files(const std::string& store_path) {
  const std::string directory = std::filesystem::path(store_path).parent_path().string();
  struct stat status {};
  if (::stat(directory.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) os::fail(directory, ENOTDIR);
  const std::string lock = (std::filesystem::path(directory) / lock_file).string();
  for (const std::string& path : {store_path, store_path + "-wal", store_path + "-shm", lock}) {
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
      throw Error(EINVAL, fmt::format("{}: is not a regular file", path));
  }
}

void check_not_lost(const std::string& store_path) {
  if (std::filesystem::exists(store_path)) return;
  const std::string lock = (std::filesystem::path(store_path).parent_path() / lock_file).string();
  const int descriptor = ::open(lock.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return;
  const auto head = read_head(descriptor);
  ::close(descriptor);
  if (!head) return;
  throw Error(
      EBADMSG,
      fmt::format("{}: it is not there, and had {} events; restore a backup with --recover-to FILE, or "
                  "move the directory away to start without what was recorded",
                  store_path, head->sequence));
}

StateLock::StateLock(const std::string& store_path)
    : path_((std::filesystem::path(store_path).parent_path() / lock_file).string()) {
  check_store_files(store_path);
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds patience{2};
  constexpr std::chrono::milliseconds between{5};
  for (const auto begun = Clock::now(); !try_lock();) {
    if (Clock::now() - begun > patience) {
      throw Error(EBUSY,
                  fmt::format("{}: in use by another resourced; stop it, or give this one another --state",
                              store_path));
    }
    std::this_thread::sleep_for(between);
  }
  head_ = read_head(descriptor_);
  watched_ = read_watched(descriptor_);
}

// Removes a lock file that this start has made before it is unlocked. A daemon that waits for the lock then
// finds that the path leads to another file or to none, and opens it again.
StateLock::~StateLock() {
  if (is_new_ && is_named(descriptor_, path_)) ::unlink(path_.c_str());
  ::close(descriptor_);
}

// Fails if the file was replaced between open(2) and flock(2): a lock on the old file keeps no daemon out.
bool StateLock::try_lock() {
  constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  int descriptor = ::open(path_.c_str(), flags);
  const bool is_new = descriptor < 0 && errno == ENOENT;
  if (is_new) descriptor = ::open(path_.c_str(), flags | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
  // Another daemon has made the file in between.
  if (is_new && descriptor < 0 && errno == EEXIST) return false;
  if (descriptor < 0) throw Error(errno, fmt::format("{}: {}", path_, std::strerror(errno)));
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0 && is_named(descriptor, path_)) {
    descriptor_ = descriptor;
    is_new_ = is_new;
    return true;
  }
  ::close(descriptor);
  return false;
}

void StateLock::write(const Head& head) noexcept {
  is_new_ = false;
  std::array<char, head_size + 1> text{};
  std::snprintf(text.data(), text.size(), head_format, static_cast<std::uint64_t>(head.store), head.sequence);
  (void)!::pwrite(descriptor_, text.data(), head_size, 0);
}

void StateLock::write_watched(WallTime now) const noexcept {
  std::array<char, watched_size + 1> text{};
  std::snprintf(text.data(), text.size(), watched_format, static_cast<std::int64_t>(to_number(now)));
  (void)!::pwrite(descriptor_, text.data(), watched_size, head_size);
}

}  // namespace resourced::daemon::log

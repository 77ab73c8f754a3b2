#include "daemon/state_lock.hpp"

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

namespace resourced::daemon {
namespace {

// One size, so that a later write replaces an earlier one as a whole.
constexpr const char* head_format = "store %016" PRIx64 " sequence %020" PRIu64 "\n";
constexpr std::size_t head_size = 53;

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

}  // namespace

StateLock::StateLock(const std::string& store_path)
    : path_((std::filesystem::path(store_path).parent_path() / lock_file).string()) {
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
}

StateLock::~StateLock() { ::close(descriptor_); }

// Fails if the file was replaced between open(2) and flock(2): a lock on the old file keeps no daemon out.
bool StateLock::try_lock() {
  const int descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (descriptor < 0) throw Error(errno, fmt::format("{}: {}", path_, std::strerror(errno)));
  struct stat opened {};
  struct stat named {};
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0 && ::fstat(descriptor, &opened) == 0 &&
      ::stat(path_.c_str(), &named) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev) {
    descriptor_ = descriptor;
    return true;
  }
  ::close(descriptor);
  return false;
}

void StateLock::write(const Head& head) const noexcept {
  std::array<char, head_size + 1> text{};
  std::snprintf(text.data(), text.size(), head_format, static_cast<std::uint64_t>(head.store), head.sequence);
  (void)!::pwrite(descriptor_, text.data(), head_size, 0);
}

}  // namespace resourced::daemon

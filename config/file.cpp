#include "config/file.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"

namespace resourced::config {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::string& path, int errnum) {
  throw Error(errnum, fmt::format("{}: {}", path, std::generic_category().message(errnum)));
}

}  // namespace

std::string read_file(const std::string& path, std::size_t max_bytes) {
  // Non-blocking, so that a FIFO is refused instead of waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, errno);
  if (S_ISDIR(status.st_mode)) fail(path, EISDIR);
  if (!S_ISREG(status.st_mode)) throw Error(EINVAL, fmt::format("{}: is not a regular file", path));

  const auto too_big = [&] {
    return Error(EFBIG, fmt::format("{}: is larger than {} bytes", path, max_bytes));
  };
  if (static_cast<std::size_t>(status.st_size) > max_bytes) throw too_big();
  std::string content;
  std::size_t size = 0;
  // One byte beyond what is expected: the file may grow while it is read, and some report no size.
  content.resize(static_cast<std::size_t>(status.st_size) + 1);
  while (true) {
    if (size == content.size()) content.resize(size * 2);
    const ssize_t got = ::read(file.get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > max_bytes) throw too_big();
  }
  content.resize(size);
  return content;
}

}  // namespace resourced::config

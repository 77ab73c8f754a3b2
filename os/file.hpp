// Files that are read whole: owned descriptors, bounded sizes, and errors that name the file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace resourced::os {

/// Owns a descriptor and closes it; one below 0 stands for none.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;

  [[nodiscard]] int get() const noexcept { return fd_; }
  /// Gives the descriptor to another owner.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// Throws Error `PATH: reason`, with the text of the errno.
[[noreturn]] void fail(const std::string& path, int errnum);

/// A file that is open for reading. Each function throws Error as fail() does, with the errno of the system
/// call: read() with ESPIPE for a FIFO, a terminal or a socket.
class InputFile {
 public:
  /// Does not wait for a writer of a FIFO, so the caller can refuse it by its status.
  explicit InputFile(std::string path);

  /// The status of the file when it was opened.
  [[nodiscard]] const struct stat& status() const noexcept { return status_; }
  /// The whole content; nothing if it has more than max_bytes.
  [[nodiscard]] std::optional<std::string> read(std::size_t max_bytes) const;

 private:
  std::string path_;
  Descriptor descriptor_;
  struct stat status_ {};
};

/// The content of a regular file. Throws Error as InputFile does, EISDIR for a directory, EINVAL for anything
/// else that is not a regular file, EFBIG for more than max_bytes; each text names the file.
[[nodiscard]] std::string read_file(const std::string& path, std::size_t max_bytes);

}  // namespace resourced::os

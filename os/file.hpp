// Files that are read or written whole: owned descriptors, bounded sizes, and errors that name the file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace resourced::os {

/// Owns a descriptor and closes it. A number below 0 is no descriptor.
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
  /// Gives up the descriptor without closing it.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// Throws Error `PATH: reason`, with the text of the errno.
[[noreturn]] void fail(const std::string& path, int errnum);

/// Opens a file. A program that this process starts does not have it. Throws Error as fail() does.
[[nodiscard]] Descriptor open_file(const std::string& path, int flags, mode_t mode = 0);
/// Writes all bytes to the file at this path. Throws Error as fail() does.
void write_all(const Descriptor& file, std::string_view bytes, const std::string& path);
/// Waits until a file is on disk, or the entries of a directory: a file that was made, renamed or removed
/// there is so after a crash, too. Throws Error as fail() does.
void sync(const std::string& path);

/// A file that is open for reading. Each function throws Error as fail() does, with the errno of the system
/// call: read() with ESPIPE for a FIFO, a terminal or a socket.
class InputFile {
 public:
  /// Opens the file. Does not wait for the writer of a FIFO, so the caller can refuse a FIFO by its status().
  explicit InputFile(std::string path);

  /// Returns the status of the file when it was opened.
  [[nodiscard]] const struct stat& status() const noexcept { return status_; }
  /// Returns the whole content, or nothing if it has more than max_bytes.
  [[nodiscard]] std::optional<std::string> read(std::size_t max_bytes) const;
  /// Checks a file with a key, password or token: throws Error EACCES unless it belongs to this process's
  /// user or to root, and nobody else can read or change it. The group of this process may read a file of
  /// root; in $CREDENTIALS_DIRECTORY (systemd's LoadCredential=) any group may, as the mask of an access list
  /// shows there.
  void require_secret() const;

 private:
  std::string path_;
  Descriptor descriptor_;
  struct stat status_ {};
};

/// Returns the content of a regular file. Throws Error as InputFile does, EISDIR for a directory, EINVAL for
/// anything else that is not a regular file, EFBIG for more than max_bytes; each text names the file.
[[nodiscard]] std::string read_file(const std::string& path, std::size_t max_bytes);

}  // namespace resourced::os

#include "os/file.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced::os {

void fail(const std::string& path, int errnum) {
  throw Error(errnum, fmt::format("{}: {}", path, std::generic_category().message(errnum)));
}

Descriptor open_file(const std::string& path, int flags, mode_t mode) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, mode));
  if (file.get() < 0) fail(path, errno);
  return file;
}

void write_all(const Descriptor& file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void sync(const std::string& path) {
  const Descriptor file = open_file(path, O_RDONLY);
  if (::fsync(file.get()) != 0) fail(path, errno);
}

InputFile::InputFile(std::string path)
    : path_(std::move(path)), descriptor_(open_file(path_, O_RDONLY | O_NONBLOCK | O_NOCTTY)) {
  if (::fstat(descriptor_.get(), &status_) != 0) fail(path_, errno);
}

std::optional<std::string> InputFile::read(std::size_t max_bytes) const {
  const auto expected = static_cast<std::size_t>(status_.st_size);
  if (expected > max_bytes) return std::nullopt;
  // Read one byte more than the reported size: the file may grow meanwhile, and some files report no size.
  std::string content(expected + 1, '\0');
  std::size_t size = 0;
  while (size <= max_bytes) {
    if (size == content.size()) content.resize(size * 2);
    const ssize_t got =
        ::pread(descriptor_.get(), content.data() + size, content.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, errno);
    if (got == 0) {
      content.resize(size);
      return content;
    }
    size += static_cast<std::size_t>(got);
  }
  return std::nullopt;
}

void InputFile::require_secret() const {
  const auto shared = status_.st_mode & (S_IRWXG | S_IRWXO);
  const char* credentials = std::getenv("CREDENTIALS_DIRECTORY");
  const bool is_credential = credentials != nullptr && path_.starts_with(std::string(credentials) + '/');
  const bool is_own_group = status_.st_uid == 0 && ::geteuid() != 0 && status_.st_gid == ::getegid();
  if (shared != 0 && !(shared == S_IRGRP && (is_credential || is_own_group))) {
    throw Error(EACCES, fmt::format("{0}: others may read or change it (mode {1:04o}): chmod 600 {0}", path_,
                                    status_.st_mode & 07777U));
  }
  if (status_.st_uid != ::geteuid() && status_.st_uid != 0)
    throw Error(EACCES,
                fmt::format("{}: belongs to uid {}, not to uid {}", path_, status_.st_uid, ::geteuid()));
}

std::string read_file(const std::string& path, std::size_t max_bytes) {
  const InputFile file(path);
  const auto kind = file.status().st_mode;
  if (S_ISDIR(kind)) fail(path, EISDIR);
  if (!S_ISREG(kind)) throw Error(EINVAL, fmt::format("{}: is not a regular file", path));
  auto content = file.read(max_bytes);
  if (!content) throw Error(EFBIG, fmt::format("{}: is larger than {} bytes", path, max_bytes));
  return *std::move(content);
}

}  // namespace resourced::os

#include "daemon/log/etcd/identity.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "core/error.hpp"
#include "os/file.hpp"

namespace resourced::daemon::log::etcd {
namespace {

std::string path_in(const std::string& directory) {
  return (std::filesystem::path(directory) / identity_file).string();
}

}  // namespace

std::optional<std::string> read_identity(const std::string& directory) {
  constexpr std::size_t most = 256;
  const std::string path = path_in(directory);
  if (!std::filesystem::exists(path)) return std::nullopt;
  std::string text = os::read_file(path, most);
  if (!text.ends_with('\n') || text.size() < 2)
    throw Error(EBADMSG, path + ": has no name of a cluster; copy the state directory of another member");
  text.pop_back();
  return text;
}

void write_identity(const std::string& directory, const std::string& cluster) {
  constexpr mode_t mode = 0600;
  const std::string path = path_in(directory);
  const std::string fresh = path + ".new";
  os::write_all(os::open_file(fresh, O_WRONLY | O_CREAT | O_TRUNC, mode), cluster + '\n', fresh);
  os::sync(fresh);
  if (::rename(fresh.c_str(), path.c_str()) != 0) os::fail(path, errno);
  os::sync(directory);
}

bool remove_identity(const std::string& directory) {
  const std::string path = path_in(directory);
  if (::unlink(path.c_str()) != 0) {
    if (errno == ENOENT) return false;
    os::fail(path, errno);
  }
  os::sync(directory);
  return true;
}

std::string random_name() {
  std::random_device random;
  constexpr int bits = 32;
  const auto half = [&] { return (std::uint64_t{random()} << bits) | random(); };
  const std::uint64_t high = half();
  const std::uint64_t low = half();
  return fmt::format("{:016x}{:016x}", high, low);
}

}  // namespace resourced::daemon::log::etcd

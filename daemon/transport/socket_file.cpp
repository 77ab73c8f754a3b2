#include "daemon/transport/socket_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace resourced::daemon::transport {

SocketFile look_at_socket(const std::string& path) {
  // Call lstat(2) first: connect(2) fails alike for a regular file and for a socket without a listener.
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return SocketFile::none;
  if (!S_ISSOCK(status.st_mode)) return SocketFile::foreign;
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) return SocketFile::none;
  address.sun_family = AF_UNIX;
  std::ranges::copy(path, address.sun_path);
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (probe < 0) return SocketFile::none;
  const int result = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int errnum = result == 0 ? 0 : errno;
  close(probe);
  // EAGAIN means that a process listens, and its queue of connections is full.
  if (errnum == 0 || errnum == EAGAIN) return SocketFile::in_use;
  return errnum == ECONNREFUSED ? SocketFile::stale : SocketFile::none;
}

void clear_socket(const std::string& path, std::string_view endpoint) {
  const SocketFile file = look_at_socket(path);
  if (file == SocketFile::in_use)
    throw Error(EADDRINUSE, fmt::format("cannot listen on {}: in use", endpoint));
  if (file == SocketFile::foreign) {
    throw Error(EEXIST, fmt::format("cannot listen on {}: a file that is not a socket is there; remove it, "
                                    "or listen elsewhere",
                                    endpoint));
  }
  if (file == SocketFile::stale) unlink(path.c_str());
}

OwnSocketFile::OwnSocketFile(std::string path) : path_(std::move(path)) {
  struct stat found {};
  if (::lstat(path_.c_str(), &found) != 0) return;
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

bool OwnSocketFile::is_there() const noexcept {
  struct stat found {};
  return ::lstat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == inode_;
}

OwnSocketFile::~OwnSocketFile() {
  if (is_there()) ::unlink(path_.c_str());
}

Error socket_is_gone(std::string_view endpoint) {
  return {ENOENT,
          fmt::format("{}: the socket was removed or replaced while in use, so nobody can connect there: "
                      "restart the daemon, which makes it anew",
                      endpoint)};
}

std::optional<PeerProcess> peer_process(int descriptor) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return PeerProcess{peer.uid, peer.gid};
}

SocketMode bus_socket_mode(const SocketMode& mode) noexcept {
  return {mode.mode & (mode.group ? 0770U : 0700U), mode.group};
}

PrivateSockets::PrivateSockets() noexcept : before_(umask(0177)) {}
PrivateSockets::~PrivateSockets() { umask(before_); }

void set_socket_mode(const std::string& path, const SocketMode& mode) {
  const auto fail = [&](const char* what) {
    const int errnum = errno;
    throw Error(errnum, fmt::format("cannot set the {} of {}: {}", what, path, std::strerror(errnum)));
  };
  // Set the group first, as its change may clear bits of the mode.
  constexpr auto same_owner = static_cast<uid_t>(-1);
  if (mode.group && chown(path.c_str(), same_owner, *mode.group) != 0) fail("group");
  if (chmod(path.c_str(), mode.mode) != 0) fail("mode");
}

}  // namespace resourced::daemon::transport

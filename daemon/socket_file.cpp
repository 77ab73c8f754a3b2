#include "daemon/socket_file.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace resourced::daemon {

SocketFile look_at_socket(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) return SocketFile::none;
  address.sun_family = AF_UNIX;
  std::ranges::copy(path, address.sun_path);
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (probe < 0) return SocketFile::none;
  const int result = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int errnum = result == 0 ? 0 : errno;
  close(probe);
  // EAGAIN: somebody listens who has not come to accept yet.
  if (errnum == 0 || errnum == EAGAIN) return SocketFile::in_use;
  return errnum == ECONNREFUSED ? SocketFile::stale : SocketFile::none;
}

}  // namespace resourced::daemon

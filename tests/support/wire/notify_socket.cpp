#include "wire/notify_socket.hpp"

#include <array>
#include <cerrno>
#include <sstream>
#include <system_error>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace resourced::wire {

NotifySocket::NotifySocket(const std::filesystem::path& path)
    : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  std::filesystem::remove(path);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (fd_ < 0 || ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::system_error(errno, std::generic_category(), path.string());
  }
}

NotifySocket::~NotifySocket() { ::close(fd_); }

std::string NotifySocket::receive() {
  std::array<char, 4096> buffer;
  const ssize_t size = ::recv(fd_, buffer.data(), buffer.size(), 0);
  if (size < 0) throw std::system_error(errno, std::generic_category(), "recv");
  return {buffer.data(), static_cast<std::size_t>(size)};
}

std::string NotifySocket::expect(std::string_view start, const Deadline& deadline) {
  while (true) {
    if (!deadline.wait(fd_, POLLIN)) throw Timeout("the service did not notify " + std::string(start));
    std::istringstream lines(receive());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(start)) return line;
    }
  }
}

}  // namespace resourced::wire

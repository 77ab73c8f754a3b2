#include "harness/raw_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace resourced::e2e {
namespace {

constexpr std::string_view tcp_scheme = "tcp://";

template <typename Address>
int connect_to(int family, const Address& address, const std::string& uri) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  throw std::system_error(error, std::generic_category(), uri);
}

int connect_to(const std::string& uri) {
  if (uri.starts_with(tcp_scheme)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoul(uri.substr(uri.rfind(':') + 1))));
    return connect_to(AF_INET, address, uri);
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  uri.substr(uri.find("//") + 2).copy(address.sun_path, sizeof(address.sun_path) - 1);
  return connect_to(AF_UNIX, address, uri);
}

}  // namespace

RawSocket::RawSocket(const std::string& uri) : fd_(connect_to(uri)) {}

RawSocket::RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RawSocket::~RawSocket() {
  if (fd_ >= 0) ::close(fd_);
}

void RawSocket::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool RawSocket::send_all(std::string_view bytes) const {
  const Deadline deadline;
  while (!bytes.empty() && deadline.wait(fd_, POLLOUT)) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return bytes.empty();
}

void RawSocket::read(std::size_t bytes) const {
  const Deadline deadline;
  std::array<char, 4096> ignored;
  while (bytes > 0) {
    const ssize_t size =
        deadline.wait(fd_, POLLIN) ? ::recv(fd_, ignored.data(), std::min(bytes, ignored.size()), 0) : 0;
    if (size <= 0) throw std::runtime_error("the other end said too little");
    bytes -= static_cast<std::size_t>(size);
  }
}

bool RawSocket::ended(const Deadline& deadline) const {
  std::array<char, 4096> ignored;
  while (deadline.wait(fd_, POLLIN)) {
    if (::recv(fd_, ignored.data(), ignored.size(), 0) <= 0) return true;
  }
  return false;
}

}  // namespace resourced::e2e

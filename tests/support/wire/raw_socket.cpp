#include "wire/raw_socket.hpp"

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

namespace resourced::wire {
namespace {

constexpr std::string_view tcp_scheme = "tcp://";

/// Makes a stream socket, calls connect() or bind() for it, and returns it.
template <typename Address, typename Call>
int open_socket(int family, const Address& address, const Call& call, const std::string& name) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && call(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  throw std::system_error(error, std::generic_category(), name);
}

sockaddr_un unix_address(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

int connect_to(const std::string& uri) {
  if (uri.starts_with(tcp_scheme)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoul(uri.substr(uri.rfind(':') + 1))));
    return open_socket(AF_INET, address, ::connect, uri);
  }
  return open_socket(AF_UNIX, unix_address(std::string_view(uri).substr(uri.find("//") + 2)), ::connect, uri);
}

}  // namespace

RawSocket::RawSocket(const std::string& uri) : fd_(connect_to(uri)) {}

RawSocket::RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RawSocket::~RawSocket() {
  if (fd_ >= 0) ::close(fd_);
}

int RawSocket::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return 0;
}

bool RawSocket::send_all(std::string_view bytes) const {
  const Deadline deadline;
  while (!bytes.empty() && deadline.wait(fd_, POLLOUT | POLLRDHUP)) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    // The peer may shut the connection down without reading the bytes in its buffer.
    if (sent < 0 && (errno != EAGAIN || hung_up())) return false;
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return bytes.empty();
}

bool RawSocket::hung_up() const {
  pollfd entry{fd_, POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) > 0;
}

std::string RawSocket::read(std::size_t bytes, const Deadline& deadline) const {
  std::string read(bytes, '\0');
  for (std::size_t have = 0; have < bytes;) {
    if (!deadline.wait(fd_, POLLIN)) throw Timeout("nothing came on the socket");
    const ssize_t size = ::recv(fd_, read.data() + have, bytes - have, 0);
    if (size <= 0) throw std::runtime_error("the other end ended the connection");
    have += static_cast<std::size_t>(size);
  }
  return read;
}

RawSocket::Discarded RawSocket::discard() const {
  std::array<char, 65536> ignored;
  Discarded discarded;
  ssize_t size = 0;
  while ((size = ::recv(fd_, ignored.data(), ignored.size(), MSG_DONTWAIT)) > 0)
    discarded.bytes += static_cast<std::size_t>(size);
  discarded.end = size == 0 || errno != EAGAIN;
  return discarded;
}

bool RawSocket::ended(const Deadline& deadline) const {
  while (deadline.wait(fd_, POLLIN)) {
    if (discard().end) return true;
  }
  return false;
}

RawListener::RawListener(const std::string& path)
    : fd_(open_socket(AF_UNIX, unix_address(path), ::bind, path)) {
  constexpr int backlog = 10;
  if (::listen(fd_, backlog) != 0) throw std::system_error(errno, std::generic_category(), path);
}

RawListener::~RawListener() { ::close(fd_); }

RawSocket RawListener::accept(const Deadline& deadline) const {
  if (!deadline.wait(fd_, POLLIN)) throw Timeout("no client came");
  return RawSocket(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
}

}  // namespace resourced::wire

// The bytes of ZMTP 3.0 (ZeroMQ RFC 23) with the NULL mechanism, over a plain socket: a peer that says in its
// handshake what libzmq would not let it say, or says nothing at all.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace resourced::test {

class RawZmtp {
 public:
  static RawZmtp to_path(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return RawZmtp(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  /// tcp://127.0.0.1:PORT
  static RawZmtp to_port(std::string_view uri) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::string port(uri.substr(uri.rfind(':') + 1));
    address.sin_port = htons(static_cast<std::uint16_t>(std::strtoul(port.c_str(), nullptr, 10)));
    return RawZmtp(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  ~RawZmtp() {
    if (fd_ >= 0) ::close(fd_);
  }
  RawZmtp(RawZmtp&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawZmtp(const RawZmtp&) = delete;
  RawZmtp& operator=(const RawZmtp&) = delete;
  RawZmtp& operator=(RawZmtp&&) = delete;

  static std::string greeting() {
    std::string bytes("\xFF\0\0\0\0\0\0\0\0\x7F\x03\0NULL", 16);
    bytes.resize(64);
    return bytes;
  }
  static std::string ready(const std::vector<std::pair<std::string, std::string>>& properties) {
    std::string body = "\x05READY";
    for (const auto& [name, value] : properties) {
      body += static_cast<char>(name.size());
      body += name;
      body += std::string("\0\0\0", 3) + static_cast<char>(value.size());
      body += value;
    }
    return std::string("\x04") + static_cast<char>(body.size()) + body;
  }
  static std::string frame(std::string_view body) {
    return std::string(1, '\0') + static_cast<char>(body.size()) + std::string(body);
  }

  /// The whole handshake, with the other end's part in it.
  void shake_hands(const std::vector<std::pair<std::string, std::string>>& properties) const {
    send(greeting() + ready(properties));
    (void)receive(greeting().size());
    (void)receive(static_cast<unsigned char>(receive(2)[1]));
  }

  void send(std::string_view bytes) const {
    if (::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("send failed");
    }
  }

  /// This many bytes.
  [[nodiscard]] std::string receive(std::size_t size) const {
    std::string bytes(size, '\0');
    if (::recv(fd_, bytes.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size)) {
      throw std::runtime_error("the other end did not send what it should");
    }
    return bytes;
  }

  /// The other end has closed the connection. What it sent before is thrown away.
  [[nodiscard]] bool ended() const {
    char bytes[256];
    ssize_t count = 0;
    while ((count = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
    return count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

 private:
  RawZmtp(int family, const sockaddr* address, socklen_t size) : fd_(::socket(family, SOCK_STREAM, 0)) {
    const timeval patience{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (::connect(fd_, address, size) != 0) throw std::runtime_error("connect failed");
  }

  int fd_;
};

}  // namespace resourced::test

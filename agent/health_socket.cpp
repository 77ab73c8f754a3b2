#include "agent/health_socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/error.hpp"
#include "os/file.hpp"

namespace resourced::agent {

using boost::asio::posix::stream_descriptor;
using os::Descriptor;

namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    throw Error(EINVAL, fmt::format("{}: not a path of 1 to {} bytes", path, sizeof address.sun_path - 1));
  std::ranges::copy(path, std::begin(address.sun_path));
  return address;
}

Descriptor datagram_socket(const std::string& path) {
  Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) os::fail(path, errno);
  return socket;
}

/// Removes the socket of this or an earlier agent, but no file of another type.
void remove_socket(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) ::unlink(path.c_str());
}

Descriptor listen_at(const std::string& path) {
  const sockaddr_un address = address_of(path);
  Descriptor socket = datagram_socket(path);
  const int yes = 1;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0) os::fail(path, errno);
  remove_socket(path);
  // bind() gives the file the permissions of the descriptor, so no other user can connect before chmod(). The
  // group's are added afterwards, as bind() applies the umask: they let a check connect that runs as root
  // without capabilities. take() refuses the results of other users.
  if (::fchmod(socket.get(), S_IRUSR | S_IWUSR) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP) != 0) {
    os::fail(path, errno);
  }
  return socket;
}

std::optional<ucred> credentials_of(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS) continue;
    ucred credentials{};
    std::memcpy(&credentials, CMSG_DATA(part), sizeof credentials);
    return credentials;
  }
  return std::nullopt;
}

}  // namespace

HealthSocket::HealthSocket(boost::asio::io_context& loop, std::string path, ReportHealth report,
                           Refused refused, Clock clock)
    : path_(std::move(path)),
      report_(std::move(report)),
      refused_(std::move(refused)),
      clock_(std::move(clock)),
      socket_(loop, listen_at(path_).release()) {
  wait();
}

HealthSocket::~HealthSocket() { remove_socket(path_); }

void HealthSocket::wait() {
  socket_.async_wait(stream_descriptor::wait_read, [this](boost::system::error_code error) {
    if (error) return;
    take_waiting();
    wait();
  });
}

void HealthSocket::take_waiting() {
  constexpr int most_at_once = 16;
  for (int i = 0; i < most_at_once && take(); ++i) {
  }
}

bool HealthSocket::take() {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
  iovec place{buffer_.data(), buffer_.size()};
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket_.native_handle(), &message, MSG_CMSG_CLOEXEC);
  if (size < 0) return false;
  const auto sender = credentials_of(message);
  if (!sender || (sender->uid != 0 && sender->uid != ::geteuid())) {
    refuse(fmt::format("{}: refused a result of uid {}", path_,
                       sender ? static_cast<std::int64_t>(sender->uid) : -1));
    return true;
  }
  try {
    report_(read_health_text({buffer_.data(), static_cast<std::size_t>(size)}));
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", path_, error.what()));
  }
  return true;
}

void HealthSocket::refuse(const std::string& line) {
  constexpr Seconds pause{60};
  const SteadyTime now = clock_();
  if (last_refused_ && now - *last_refused_ < pause) {
    ++left_out_;
    return;
  }
  last_refused_ = now;
  const std::uint64_t before = std::exchange(left_out_, 0);
  refused_(before == 0 ? line : fmt::format("{} ({} more like this were not logged)", line, before));
}

void send_health(const std::string& path, const nodes::HealthReport& report) {
  const sockaddr_un address = address_of(path);
  const Descriptor socket = datagram_socket(path);
  const std::string text = write_health_text(report);
  const ssize_t sent = ::sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (sent < 0) os::fail(path, errno);
}

}  // namespace resourced::agent

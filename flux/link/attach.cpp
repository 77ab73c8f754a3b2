#include "flux/link/attach.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "core/error.hpp"

namespace resourced::flux::link {
namespace {

/// The text beside the descriptors, followed by the generation and one of the words below.
constexpr std::string_view greeting = "resourced attach 1 ";
constexpr std::string_view first = " first";
constexpr std::string_view again = " again";
constexpr std::size_t descriptors = 2;
constexpr std::size_t longest = 64;

/// A message of a socket: bytes, and room for descriptors beside them.
class Parcel {
 public:
  Parcel(char* bytes, std::size_t size) : bytes_{bytes, size} {
    message_.msg_iov = &bytes_;
    message_.msg_iovlen = 1;
    message_.msg_control = control_.data();
    message_.msg_controllen = control_.size();
  }
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;
  Parcel(Parcel&&) = delete;
  Parcel& operator=(Parcel&&) = delete;
  ~Parcel() = default;

  [[nodiscard]] msghdr& message() noexcept { return message_; }

 private:
  iovec bytes_;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * descriptors)> control_{};
  msghdr message_{};
};

[[noreturn]] void refuse(std::string_view why) {
  throw Error(EPROTO, fmt::format("not a keeper of this version: {}", why));
}

/// Returns all received descriptors, in order. The kernel drops those for which there is no room.
std::vector<os::Descriptor> taken(msghdr& message) {
  std::vector<os::Descriptor> found;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      found.emplace_back(fd);
    }
  }
  return found;
}

bool is_stream_socket(int fd) {
  int domain = 0;
  int type = 0;
  socklen_t size = sizeof(int);
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return false;
  size = sizeof(int);
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && domain == AF_UNIX && type == SOCK_STREAM;
}

bool is_file(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

void send_attachment(int socket, int link, int welcome, std::uint8_t generation, bool is_first) {
  std::string text = fmt::format("{}{}{}", greeting, generation, is_first ? first : again);
  Parcel parcel(text.data(), text.size());
  cmsghdr* header = CMSG_FIRSTHDR(&parcel.message());
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors);
  const std::array<int, descriptors> passed{link, welcome};
  std::memcpy(CMSG_DATA(header), passed.data(), sizeof(passed));
  // So few bytes always fit into a new socket.
  if (::sendmsg(socket, &parcel.message(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
    throw std::system_error(errno, std::system_category(), "sendmsg");
}

std::optional<Attachment> receive_attachment(int socket) {
  std::array<char, longest> text{};
  Parcel parcel(text.data(), text.size());
  const ssize_t size = ::recvmsg(socket, &parcel.message(), MSG_CMSG_CLOEXEC);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (size <= 0) throw Error(ECONNRESET, "the keeper has gone before it attached");
  std::vector<os::Descriptor> passed = taken(parcel.message());
  std::string_view rest(text.data(), static_cast<std::size_t>(size));
  if (!rest.starts_with(greeting)) refuse("another greeting");
  rest.remove_prefix(greeting.size());
  unsigned generation = 0;
  const auto [end, errnum] = std::from_chars(rest.data(), rest.data() + rest.size(), generation);
  constexpr unsigned most = 255;
  if (errnum != std::errc() || generation == 0 || generation > most)
    refuse("a generation from 1 to 255 is missing");
  const std::string_view word(end, static_cast<std::size_t>(rest.data() + rest.size() - end));
  if (word != first && word != again) refuse("\"first\" or \"again\" is missing");
  if (passed.size() != descriptors || !is_stream_socket(passed[0].get()) || !is_file(passed[1].get()))
    refuse("it has not passed a socket and a file");
  return Attachment{std::move(passed[0]), std::move(passed[1]), static_cast<std::uint8_t>(generation),
                    word == first};
}

}  // namespace resourced::flux::link

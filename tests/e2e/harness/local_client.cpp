#include "harness/local_client.hpp"

#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <system_error>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace resourced::e2e {
namespace {

constexpr std::string_view frame_magic("\x12\x00\xEE\xFF", 4);
constexpr std::uint8_t long_part = 0xFF;

std::size_t big_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

std::string four_bytes(std::size_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>((value >> shift) & 0xFF));
  return bytes;
}

std::string encoded(std::string_view data) {
  if (data.size() < long_part) return static_cast<char>(data.size()) + std::string(data);
  return static_cast<char>(long_part) + four_bytes(data.size()) + std::string(data);
}

}  // namespace

std::string local_frame(const std::vector<std::string>& parts) {
  std::string body;
  for (const std::string& part : parts) body += encoded(part);
  return std::string(frame_magic) + four_bytes(body.size()) + body;
}

LocalClient::LocalClient(const std::filesystem::path& socket)
    : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (fd_ < 0 || ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::system_error(errno, std::generic_category(), socket.string());
  }
  welcome_ = static_cast<std::uint8_t>(take(1, Deadline())[0]);
}

LocalClient::~LocalClient() { ::close(fd_); }

void LocalClient::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) throw std::system_error(errno, std::generic_category(), "send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string LocalClient::take(std::size_t count, const Deadline& deadline) {
  std::string bytes(count, '\0');
  for (std::size_t have = 0; have < count;) {
    if (!deadline.wait(fd_, POLLIN)) throw Timeout("nothing came on the Unix socket");
    const ssize_t size = ::recv(fd_, bytes.data() + have, count - have, 0);
    if (size <= 0) throw std::runtime_error("the daemon ended the connection");
    have += static_cast<std::size_t>(size);
  }
  return bytes;
}

std::vector<std::string> LocalClient::receive(const Deadline& deadline) {
  const std::string header = take(8, deadline);
  if (!header.starts_with(frame_magic)) throw std::runtime_error("a frame without its magic");
  const std::string body = take(big_endian(header.substr(4)), deadline);
  std::vector<std::string> parts;
  std::string_view rest = body;
  while (!rest.empty()) {
    std::size_t size = static_cast<std::uint8_t>(rest[0]);
    rest.remove_prefix(1);
    if (size == long_part) {
      size = big_endian(rest.substr(0, 4));
      rest.remove_prefix(4);
    }
    if (size > rest.size()) throw std::runtime_error("a part that is longer than its frame");
    parts.emplace_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return parts;
}

std::uint32_t LocalClient::request(std::string_view topic, const nlohmann::json& payload,
                                   std::uint8_t flags) {
  flags |= wire::flag_route | wire::flag_topic;
  std::vector<std::string> parts{"", std::string(topic)};
  if (!payload.is_null()) {
    flags |= wire::flag_payload;
    parts.push_back(payload.dump() + '\0');
  }
  parts.push_back(wire::proto(wire::type_request, flags, wire::nodeid_any, ++last_matchtag_));
  send(local_frame(parts));
  return last_matchtag_;
}

RawResponse LocalClient::response(const Deadline& deadline) { return take_apart(receive(deadline)); }

RawResponse LocalClient::call(std::string_view topic, const nlohmann::json& payload) {
  const std::uint32_t matchtag = request(topic, payload);
  RawResponse answer = response();
  if (answer.matchtag != matchtag) throw std::runtime_error("an answer to another request");
  return answer;
}

bool LocalClient::ended(const Deadline& deadline) {
  while (deadline.wait(fd_, POLLIN)) {
    char byte = 0;
    if (::recv(fd_, &byte, 1, 0) <= 0) return true;
  }
  return false;
}

}  // namespace resourced::e2e

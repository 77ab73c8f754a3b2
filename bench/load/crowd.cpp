#include "bench/load/crowd.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/raw_client.hpp"

namespace resourced::bench {
namespace {

/// The heartbeat interval of the daemon, in seconds.
constexpr double heartbeat_interval = 5;

enum FrameFlag : std::uint8_t { more = 1, large = 2, command = 4 };

std::string frame(std::string_view body, std::uint8_t flags = 0) {
  std::string bytes;
  if (body.size() > 255) {
    bytes += static_cast<char>(flags | large);
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(body.size() >> shift & 0xFF);
  } else {
    bytes += static_cast<char>(flags);
    bytes += static_cast<char>(body.size());
  }
  return bytes.append(body);
}

std::string greeting() {
  std::string bytes("\xFF\0\0\0\0\0\0\0\0\x7F\x03\x01NULL", 16);
  bytes.resize(64);
  return bytes;
}

const std::string ready = frame(std::string("\x05READY\x0BSocket-Type\0\0\0\x06"
                                            "DEALER",
                                            28),
                                command);
// A PING of ZMTP as resource-agent sends it: no TTL and no context.
const std::string ping = frame(std::string("\x04PING\0\0", 7), command);

std::string request(std::string_view topic, std::string_view payload, std::uint8_t flags,
                    std::uint32_t matchtag) {
  flags |= wire::flag_route | wire::flag_topic;
  std::string bytes = frame("", more) + frame(topic, more);
  if (!payload.empty()) {
    flags |= wire::flag_payload;
    bytes += frame(std::string(payload) + '\0', more);
  }
  return bytes + frame(wire::proto(wire::type_request, flags, wire::nodeid_any, matchtag));
}

std::string hello_of(std::size_t agent) {
  return fmt::format(
      R"({{"hostname":"node{0}","R":{{"version":1,"execution":{{"R_lite":[{{"rank":"0","children":{{"core":)"
      R"("0-95","gpu":"0-3"}}}}],"nodelist":["node{0}"],"starttime":0.0,"expiration":0.0}}}}}})",
      agent);
}

}  // namespace

Crowd::Crowd(const std::string& uri, std::size_t agents, std::size_t agents_on_a_connection)
    : agents_(agents), agents_on_a_connection_(agents_on_a_connection), epoll_(::epoll_create1(0)) {
  const std::string path = uri.substr(std::string_view("ipc://").size());
  for (std::size_t first = 0; first < agents; first += agents_on_a_connection) {
    connections_.push_back({-1, first, std::min(agents_on_a_connection, agents - first), 0, {}});
  }
  for (Connection& connection : connections_) connect(connection, path);
}

Crowd::~Crowd() {
  for (const Connection& connection : connections_) {
    if (connection.fd >= 0) ::close(connection.fd);
  }
  ::close(epoll_);
}

void Crowd::connect(Connection& connection, const std::string& path) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  connection.fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection.fd < 0 ||
      ::connect(connection.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error(fmt::format("{}: errno {}", path, errno));
  }
  write(connection, greeting() + ready);
  // Read the greeting of the daemon, which it sends at once; take_frames() reads the frames after it.
  std::array<char, 64> theirs{};
  if (::recv(connection.fd, theirs.data(), theirs.size(), MSG_WAITALL) !=
      static_cast<ssize_t>(theirs.size())) {
    throw std::runtime_error("the daemon ended a connection before its greeting");
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &connection;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event);
}

void Crowd::write(const Connection& connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) throw std::runtime_error(fmt::format("send: errno {}", errno));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void Crowd::hello() {
  for (const Connection& connection : connections_) {
    for (std::size_t i = 0; i < connection.count; ++i) {
      write(connection, request("resource.agent", hello_of(connection.first + i), wire::flag_streaming,
                                static_cast<std::uint32_t>(i + 1)));
      read(0);
    }
  }
  while (accepted_ < agents_) read(60000);
}

void Crowd::read(int patience) {
  std::array<epoll_event, 256> events;
  const int count = ::epoll_wait(epoll_, events.data(), events.size(), patience);
  if (count == 0 && patience >= 60000) throw std::runtime_error("nothing came for a minute");
  for (int i = 0; i < count; ++i) {
    auto& connection = *static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
    std::array<char, 65536> bytes;
    const ssize_t size = ::recv(connection.fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size == 0)
      throw std::runtime_error(
          fmt::format("the daemon ended a connection: {} accepted, first {}", accepted_, connection.first));
    if (size < 0) continue;
    connection.pending.append(bytes.data(), static_cast<std::size_t>(size));
    take_frames(connection);
  }
}

// Answers PING. The last frame of a message is PROTO, whose errnum tells whether a hello was accepted.
void Crowd::take_frames(Connection& connection) {
  std::string_view left = connection.pending;
  while (left.size() >= 2) {
    const auto flags = static_cast<std::uint8_t>(left[0]);
    if ((flags & large) != 0) throw std::runtime_error("a frame larger than any that is expected");
    const auto size = static_cast<std::size_t>(static_cast<std::uint8_t>(left[1]));
    if (left.size() < 2 + size) break;
    const std::string_view body = left.substr(2, size);
    left.remove_prefix(2 + size);
    if ((flags & command) != 0) {
      if (body.starts_with("\x04PING"))
        write(connection, frame(fmt::format("\x04PONG{}", body.substr(7)), command));
    } else if ((flags & more) == 0) {
      if (body.size() != 20 || body.substr(12, 4) != std::string_view("\0\0\0\0", 4))
        throw std::runtime_error("an agent was refused");
      ++accepted_;
    }
  }
  connection.pending.erase(0, connection.pending.size() - left.size());
  connection.pending.shrink_to_fit();
}

void Crowd::beat(std::size_t agent) {
  const Connection& connection = connections_[agent / agents_on_a_connection_];
  if (connection.fd < 0) return;
  const std::string payload = agents_on_a_connection_ == 1
                                  ? std::string()
                                  : fmt::format(R"({{"matchtag":{}}})", agent - connection.first + 1);
  write(connection, request("resource.agent-beat", payload, wire::flag_noresponse, 0));
}

void Crowd::heartbeat() {
  if (seconds_since(last_heartbeat_) < heartbeat_interval) return;
  last_heartbeat_ = Clock::now();
  for (const Connection& connection : connections_) {
    if (connection.fd >= 0) write(connection, ping);
  }
}

void Crowd::live(double seconds, double interval) {
  const auto start = Clock::now();
  const std::size_t begin = last_beat_;
  for (double passed = 0; passed < seconds; passed = seconds_since(start)) {
    const auto due = begin + static_cast<std::size_t>(passed / interval * static_cast<double>(agents_));
    for (; last_beat_ < due; ++last_beat_) beat(last_beat_ % agents_);
    heartbeat();
    read(1);
  }
}

void Crowd::lose(std::size_t agents) {
  for (Connection& connection : connections_) {
    if (connection.first >= agents) return;
    ::close(connection.fd);
    connection.fd = -1;
  }
}

}  // namespace resourced::bench

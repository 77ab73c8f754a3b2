#include "proto/zmq_socket.hpp"

#include <cstring>
#include <utility>

namespace resourced::proto {

int events_of(zmq::socket_t& socket) {
  int events = 0;
  std::size_t size = sizeof events;
  uninterrupted([&] { return zmq_getsockopt(socket.handle(), ZMQ_EVENTS, &events, &size); });
  return events;
}

int send_now(zmq::socket_t& socket, std::string_view part, bool more) {
  const int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
  const int sent = uninterrupted([&] { return zmq_send(socket.handle(), part.data(), part.size(), flags); });
  return sent < 0 ? errno : 0;
}

bool receive_now(zmq::socket_t& socket, zmq::message_t& part) {
  return uninterrupted([&] { return zmq_msg_recv(part.handle(), socket.handle(), ZMQ_DONTWAIT); }) >= 0;
}

Reading receive_now(zmq::socket_t& socket, Multipart& message, std::size_t most_parts) {
  constexpr std::size_t most_thrown_away = 64;
  if (!message.is_unfinished) {
    message.parts.clear();
    message.too_many = false;
    message.bytes = 0;
  }
  message.is_unfinished = false;
  for (std::size_t thrown_away = 0; thrown_away < most_thrown_away;) {
    zmq::message_t part;
    if (!receive_now(socket, part)) return Reading::nothing;
    const bool more = part.more();
    message.bytes += frame_bytes(part, message.is_encrypted);
    if (message.parts.size() < most_parts) {
      message.parts.push_back(std::move(part));
    } else {
      message.too_many = true;
      ++thrown_away;
    }
    if (!more) return Reading::message;
  }
  message.is_unfinished = true;
  return Reading::part_of_message;
}

std::uint64_t frame_bytes(const zmq::message_t& part, bool is_encrypted) {
  constexpr std::size_t most_in_short_frame = 255;
  constexpr std::uint64_t short_header = 2;
  constexpr std::uint64_t long_header = 9;
  // A MESSAGE command has its name, the short nonce, the authenticator and the flags.
  constexpr std::uint64_t curve_overhead = 8 + 8 + 16 + 1;
  const std::uint64_t size = part.size() + (is_encrypted ? curve_overhead : 0);
  return size + (size > most_in_short_frame ? long_header : short_header);
}

std::vector<std::string_view> views_of(const Multipart& message, std::size_t first) {
  std::vector<std::string_view> views;
  views.reserve(message.parts.size());
  for (std::size_t i = first; i < message.parts.size(); ++i)
    views.push_back(message.parts[i].to_string_view());
  return views;
}

void open_monitor(zmq::socket_t& socket, zmq::socket_t& monitor, const std::string& address, int events) {
  monitor.set(zmq::sockopt::linger, 0);
  const char* place = address.c_str();
  if (uninterrupted([&] { return zmq_socket_monitor(socket.handle(), place, events); }) < 0 ||
      uninterrupted([&] { return zmq_connect(monitor.handle(), place); }) < 0) {
    throw zmq::error_t();
  }
}

// Reads an event of two parts: its number with its value, and the address of the endpoint.
std::optional<MonitorEvent> next_event(zmq::socket_t& monitor) {
  zmq::message_t part;
  if (!receive_now(monitor, part)) return std::nullopt;
  MonitorEvent event;
  if (part.size() >= sizeof event.number + sizeof event.value) {
    std::memcpy(&event.number, part.data(), sizeof event.number);
    std::memcpy(&event.value, part.data<char>() + sizeof event.number, sizeof event.value);
  }
  while (part.more() && receive_now(monitor, part)) {
  }
  return event;
}

}  // namespace resourced::proto

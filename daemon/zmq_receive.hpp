// Reading from ZeroMQ sockets that Asio waits on: never blocking, and with a bound on what is kept.
#pragma once

#include <string_view>
#include <vector>

#include <zmq.hpp>

namespace resourced::daemon {

/// A message of many parts ends up in one of these; what lies beyond the limit is read and thrown away.
struct Multipart {
  std::vector<zmq::message_t> parts;
  bool too_many = false;
};

/// Reads without waiting; false if there is nothing. A signal (SIGHUP reloads) may interrupt ZeroMQ even
/// then.
inline bool receive_now(zmq::socket_t& socket, zmq::message_t& part) {
  while (zmq_msg_recv(part.handle(), socket.handle(), ZMQ_DONTWAIT) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

/// Reads one whole message without waiting; false if there is none.
inline bool receive_now(zmq::socket_t& socket, Multipart& message, std::size_t most_parts) {
  message.parts.clear();
  message.too_many = false;
  for (;;) {
    zmq::message_t part;
    if (!receive_now(socket, part)) return false;
    const bool more = part.more();
    if (message.parts.size() < most_parts) {
      message.parts.push_back(std::move(part));
    } else {
      message.too_many = true;
    }
    if (!more) return true;
  }
}

/// The parts from `first` on.
inline std::vector<std::string_view> views_of(const Multipart& message, std::size_t first) {
  std::vector<std::string_view> views;
  views.reserve(message.parts.size());
  for (std::size_t i = first; i < message.parts.size(); ++i)
    views.push_back(message.parts[i].to_string_view());
  return views;
}

}  // namespace resourced::daemon

// Reading from ZeroMQ sockets that Asio waits on: never blocking, and with a bound on what is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <zmq.hpp>

namespace resourced::daemon::transport {

/// A message of several parts. The parts beyond a limit are read and thrown away.
struct Multipart {
  /// Whether the messages come over CURVE. Set by the caller, for `bytes`.
  bool is_encrypted = false;
  std::vector<zmq::message_t> parts;
  bool too_many = false;
  /// Bytes of all parts on the connection, those that were thrown away too (ZMTP 3.1, framing; CurveZMQ,
  /// MESSAGE command).
  std::uint64_t bytes = 0;
  /// Whether the last call of receive_now() stopped between two parts.
  bool is_unfinished = false;
};

/// The bytes that one part takes between libzmq peers: its frame, which with CURVE holds a MESSAGE command.
inline std::uint64_t frame_bytes(const zmq::message_t& part, bool is_encrypted) {
  constexpr std::size_t most_in_short_frame = 255;
  constexpr std::uint64_t short_header = 2;
  constexpr std::uint64_t long_header = 9;
  // The name of the command, the short nonce, the authenticator and the flags.
  constexpr std::uint64_t curve_overhead = 8 + 8 + 16 + 1;
  const std::uint64_t size = part.size() + (is_encrypted ? curve_overhead : 0);
  return size + (size > most_in_short_frame ? long_header : short_header);
}

/// Reads without waiting; false if there is nothing. A signal (SIGHUP reloads) may interrupt ZeroMQ even
/// then.
inline bool receive_now(zmq::socket_t& socket, zmq::message_t& part) {
  while (zmq_msg_recv(part.handle(), socket.handle(), ZMQ_DONTWAIT) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

enum class Reading { nothing, part_of_message, message };

/// Reads a message without waiting. A message may have millions of empty parts, so one call throws away only
/// some of those beyond `most_parts`; the next call continues.
inline Reading receive_now(zmq::socket_t& socket, Multipart& message, std::size_t most_parts) {
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

/// The parts from `first` on.
inline std::vector<std::string_view> views_of(const Multipart& message, std::size_t first) {
  std::vector<std::string_view> views;
  views.reserve(message.parts.size());
  for (std::size_t i = first; i < message.parts.size(); ++i)
    views.push_back(message.parts[i].to_string_view());
  return views;
}

}  // namespace resourced::daemon::transport

// Calls on ZeroMQ sockets as both ends of a connection make them: they never wait, no signal interrupts them
// (libzmq returns EINTR even from calls that do not wait, and SIGHUP reloads), and what they keep is bounded.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <zmq.hpp>

namespace resourced::proto {

/// Repeats a call of libzmq's C functions that a signal interrupts. Returns its result: -1 for an error, with
/// errno set.
template <class Call>
int uninterrupted(const Call& call) {
  for (;;) {
    const int result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

/// ZMQ_POLLIN and ZMQ_POLLOUT as they apply now. Has libzmq process the events of all peers.
[[nodiscard]] int events_of(zmq::socket_t& socket);

/// Returns 0 or the errno of the failure: EAGAIN if there is no room.
int send_now(zmq::socket_t& socket, std::string_view part, bool more);

/// Returns false if there is no part to read.
[[nodiscard]] bool receive_now(zmq::socket_t& socket, zmq::message_t& part);

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

enum class Reading { nothing, part_of_message, message };

/// Reads a message. A message may have millions of empty parts, so one call throws away only some of those
/// beyond `most_parts`; the next call continues.
[[nodiscard]] Reading receive_now(zmq::socket_t& socket, Multipart& message, std::size_t most_parts);

/// The bytes that one part takes between libzmq peers: its frame, which with CURVE holds a MESSAGE command.
[[nodiscard]] std::uint64_t frame_bytes(const zmq::message_t& part, bool is_encrypted);

/// The parts from `first` on.
[[nodiscard]] std::vector<std::string_view> views_of(const Multipart& message, std::size_t first);

/// Makes `monitor`, a PAIR socket, report these events of a socket (zmq_socket_monitor(3)). The address
/// begins with `inproc://` and is in no other use. Throws zmq::error_t.
void open_monitor(zmq::socket_t& socket, zmq::socket_t& monitor, const std::string& address, int events);

/// An event of a monitor.
struct MonitorEvent {
  std::uint16_t number = 0;  ///< ZMQ_EVENT_...
  std::uint32_t value = 0;   ///< by the event: a descriptor, or an error number
};

/// The next event, if there is one.
[[nodiscard]] std::optional<MonitorEvent> next_event(zmq::socket_t& monitor);

}  // namespace resourced::proto

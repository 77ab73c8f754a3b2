// Calls on ZeroMQ sockets for both ends of a connection: they never wait, no signal interrupts them (libzmq
// returns EINTR even from calls that do not wait, and SIGHUP reloads), and the memory that they keep is
// bounded.
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

/// Returns ZMQ_POLLIN and ZMQ_POLLOUT as they apply now. Makes libzmq process the events of all peers.
[[nodiscard]] int events_of(zmq::socket_t& socket);

/// Sends a part. Returns 0 or the errno of the failure: EAGAIN if there is no room.
int send_now(zmq::socket_t& socket, std::string_view part, bool more);

/// Receives a part. Returns false if there is none to read.
[[nodiscard]] bool receive_now(zmq::socket_t& socket, zmq::message_t& part);

/// A message of several parts. Parts beyond a limit are read and discarded.
struct Multipart {
  /// Whether the messages come over CURVE. Set by the caller, for `bytes`.
  bool is_encrypted = false;
  std::vector<zmq::message_t> parts;
  bool too_many = false;
  /// Bytes of all parts on the connection, the discarded ones included (ZMTP 3.1, framing; CurveZMQ, MESSAGE
  /// command).
  std::uint64_t bytes = 0;
  /// Whether the last call of receive_now() stopped between two parts.
  bool is_unfinished = false;
};

enum class Reading { nothing, part_of_message, message };

/// Reads a message. A message may have millions of empty parts, so one call discards only some of those
/// beyond `most_parts`; the next call continues.
[[nodiscard]] Reading receive_now(zmq::socket_t& socket, Multipart& message, std::size_t most_parts);

/// Number of bytes that one part takes between libzmq peers: its frame, which with CURVE holds a MESSAGE
/// command.
[[nodiscard]] std::uint64_t frame_bytes(const zmq::message_t& part, bool is_encrypted);

/// Returns views of the parts from `first` on.
[[nodiscard]] std::vector<std::string_view> views_of(const Multipart& message, std::size_t first);

/// Makes `monitor`, a PAIR socket, report these events of a socket (zmq_socket_monitor(3)). The address
/// begins with `inproc://` and must not be in other use. Throws zmq::error_t.
void open_monitor(zmq::socket_t& socket, zmq::socket_t& monitor, const std::string& address, int events);

/// An event of a monitor.
struct MonitorEvent {
  std::uint16_t number = 0;  ///< ZMQ_EVENT_...
  std::uint32_t value = 0;   ///< by the event: a descriptor, or an error number
};

/// Returns the next event, if there is one.
[[nodiscard]] std::optional<MonitorEvent> next_event(zmq::socket_t& monitor);

}  // namespace resourced::proto

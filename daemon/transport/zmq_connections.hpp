// The connections of a ROUTER socket, which ZeroMQ neither counts nor closes one by one. The socket's monitor
// reports them by file descriptor. This class asks the kernel for the peer, enforces the limit of connections
// of each peer, and shuts down refused ones, which ZeroMQ then sees end.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/transport/connection_count.hpp"

namespace resourced::daemon::transport {

/// A TCP connection as the kernel sees it.
struct TcpState {
  std::uint64_t bytes_received = 0;
  /// Whether the kernel waits for an acknowledgement in vain, and sends the same again: data, or a probe
  /// whether the peer has room for data. A peer that is there acknowledges both, also if it does not read.
  bool sends_again = false;
  /// How long ago the peer has acknowledged something.
  std::chrono::milliseconds since_acknowledged{0};
};
/// Returns the state of a TCP connection, or nothing if the descriptor is not one.
[[nodiscard]] std::optional<TcpState> tcp_state(int descriptor);

class ZmqConnections {
 public:
  /// TCP connections are lost whose peers acknowledge nothing for longer than `longest_unanswered`.
  ZmqConnections(std::shared_ptr<ConnectionCount> count, std::chrono::milliseconds longest_unanswered)
      : count_(std::move(count)), longest_unanswered_(longest_unanswered) {}

  struct Admission {
    /// False if messages of the connection are discarded. end_refused() then ends it.
    bool wanted = true;
    /// Reason of a refusal, for the log; empty if there is nothing to log.
    std::string refusal = {};
  };
  /// Handles the monitor's event that a connection was accepted on this descriptor.
  [[nodiscard]] Admission accepted(int descriptor);
  /// Handles the monitor's event that the connection on this descriptor has ended.
  void disconnected(int descriptor);
  /// Shuts down refused connections. The monitor must have been read to its end: a connection that has ended
  /// by itself may have left its descriptor to another one.
  void end_refused();

  /// Shuts a connection down if it is still open. The monitor then reports its end.
  void end(int descriptor) const;

  /// Counts a message of this many bytes (Multipart::bytes) from the connection on this descriptor.
  void heard(int descriptor, std::uint64_t bytes);
  /// Measures some of the TCP connections, and all of them in several calls. Shuts down each one that is
  /// lost, or has received more than `most` bytes of an unfinished message, and while all together have more
  /// than `most_in_all`, the one with the most: libzmq keeps the parts of an unfinished message without a
  /// bound. Returns lines for the log about those with such messages.
  [[nodiscard]] std::vector<std::string> check(std::uint64_t most, std::uint64_t most_in_all);

  /// The descriptors of the connections that have not ended.
  [[nodiscard]] std::vector<int> open() const;

 private:
  struct Connection {
    /// Inode of the socket, which tells it from the next socket on the same descriptor.
    std::uint64_t socket = 0;
    /// Address or uid that the connection counts for; "" for a refused connection.
    std::string peer;
    /// Received bytes that belong to whole messages or to ZMTP commands.
    std::uint64_t settled = 0;
    /// Received bytes beyond `settled`, or 0 if a message was read between the last two measurements.
    std::uint64_t pending = 0;
    /// A message was read since the last measurement.
    bool has_message = false;
    /// Since when each measurement has found TcpState::sends_again.
    std::optional<std::chrono::steady_clock::time_point> sends_again_since = std::nullopt;
  };

  void forget(int descriptor);
  void measure(int descriptor);
  [[nodiscard]] bool is_lost(Connection& connection, const TcpState& state) const;
  [[nodiscard]] std::string end_as_overlong(int descriptor);

  std::shared_ptr<ConnectionCount> count_;
  std::chrono::milliseconds longest_unanswered_;
  std::unordered_map<int, Connection> open_;
  std::vector<int> refused_;
  // Connections that check() has not measured yet in this round.
  std::vector<int> unmeasured_;
};

}  // namespace resourced::daemon::transport

// The connections behind a ROUTER socket, which ZeroMQ neither counts nor closes one by one. The socket's
// monitor tells of them by file descriptor; this side asks the kernel who is at the other end, holds each
// peer to its number of connections, and shuts down those that are not wanted. ZeroMQ then sees them end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/connection_count.hpp"

namespace resourced::daemon {

class ZmqConnections {
 public:
  /// 0: no limit.
  explicit ZmqConnections(std::size_t most_per_peer) : count_(most_per_peer) {}

  struct Admission {
    /// False: nothing is to be heard of the connection, which ends with end_refused().
    bool wanted = true;
    /// For the log; empty if there is nothing to tell.
    std::string refusal = {};
  };
  /// Monitor: a connection was accepted on this descriptor.
  [[nodiscard]] Admission accepted(int descriptor);
  /// Monitor: the connection on this descriptor ended.
  void disconnected(int descriptor);
  /// Shuts down what was refused. The monitor must have been read to its end, so that connections which have
  /// ended by themselves are not looked for under descriptors that others have now.
  void end_refused();

  /// Shuts a connection down, if it is still there. That it has ended is for the monitor to say.
  void end(int descriptor) const;

 private:
  struct Connection {
    /// The inode of the socket, which tells it from the next one on the same descriptor.
    std::uint64_t socket = 0;
    /// Who it counts for; "" for a connection that was refused.
    std::string peer;
  };

  void forget(int descriptor);

  ConnectionCount count_;
  std::unordered_map<int, Connection> open_;
  std::vector<int> refused_;
};

}  // namespace resourced::daemon

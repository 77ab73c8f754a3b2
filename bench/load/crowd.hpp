// Thousands of clients of the daemon in one process. The node agents write the bytes of ZMTP 3.1 and RFC 3
// directly, since a libzmq socket for each would cost more than the daemon that is measured. Each agent sends
// one hello, then beats like resource-agent, spread over the interval, and sends and answers ZMTP heartbeats
// as libzmq does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure/timing.hpp"

namespace resourced::bench {

/// Node agents.
class Crowd {
 public:
  /// Connects agents of the hosts node0, node1..., `agents_on_a_connection` each, to an ipc:// endpoint.
  Crowd(const std::string& uri, std::size_t agents, std::size_t agents_on_a_connection);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  /// Sends all hellos at once and waits until they are accepted.
  void hello();
  /// Sends beats and heartbeats for this many seconds, each agent one beat per `interval` seconds.
  void live(double seconds, double interval);
  /// Closes the connections of the first `agents` agents at once.
  void lose(std::size_t agents);

 private:
  struct Connection {
    int fd = -1;
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t accepted = 0;
    /// Received bytes of an incomplete frame.
    std::string pending;
  };

  void connect(Connection& connection, const std::string& path) const;
  /// Reads from the connections that have data; waits for at most `patience` milliseconds.
  void read(int patience);
  void take_frames(Connection& connection);
  void beat(std::size_t agent);
  void heartbeat();
  static void write(const Connection& connection, std::string_view bytes);

  std::size_t agents_;
  std::size_t agents_on_a_connection_;
  std::vector<Connection> connections_;
  std::size_t accepted_ = 0;
  std::size_t last_beat_ = 0;
  Clock::time_point last_heartbeat_ = Clock::now();
  int epoll_ = -1;
};

/// Consumers of the journal: opens `count` journals and prints "ready" once each has read the history. Prints
/// "done" when each has read `events` further events with the same bytes; throws if they do not arrive.
void consume(const std::string& uri, std::size_t count, std::uint64_t events);

}  // namespace resourced::bench

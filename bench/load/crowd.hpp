// Thousands of peers of the daemon in one process. Node agents are played on the bytes of ZMTP 3.1 and RFC 3
// alone: a socket of libzmq for each would take more than what is measured. Each says hello once and beats
// like resource-agent, which is spread over the interval, and answers and sends the heartbeats of ZMTP as
// libzmq does.
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
  /// Agents of the hosts node0, node1..., so many on a connection, to an ipc:// endpoint.
  Crowd(const std::string& uri, std::size_t agents, std::size_t agents_on_a_connection);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  /// All say hello at once, and are accepted.
  void hello();
  /// Beats and heartbeats for so long, each agent once every `interval` seconds; ends with a whole interval.
  void live(double seconds, double interval);
  /// Closes the connections of the first so many agents at once.
  void lose(std::size_t agents);

 private:
  struct Connection {
    int fd = -1;
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t accepted = 0;
    /// What has come and is no whole frame yet.
    std::string pending;
  };

  void connect(Connection& connection, const std::string& path) const;
  /// Reads what has come, for at most so many milliseconds.
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

/// Consumers of the journal: opens `count` journals and prints "ready" once each has read the past. Prints
/// "done" when each has read `events` further events, all of the same bytes; throws if they do not come.
void consume(const std::string& uri, std::size_t count, std::uint64_t events);

}  // namespace resourced::bench

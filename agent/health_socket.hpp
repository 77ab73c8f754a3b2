// The socket where a process outside of the agent hands over results of health checks: under systemd
// resource-health.service. A Unix datagram is one result (health_text.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "agent/check_program.hpp"
#include "agent/health_text.hpp"
#include "core/time.hpp"

namespace resourced::agent {

class HealthSocket {
 public:
  using Refused = std::function<void(const std::string&)>;
  using Clock = std::function<SteadyTime()>;

  /// Listens at this path, where a socket of an earlier agent is replaced. Reports the results of processes
  /// of root and of the own user; `refused` gets a line about another datagram, at most one a minute, with
  /// the number of those that had none before. Throws Error that names the path.
  HealthSocket(boost::asio::io_context& loop, std::string path, ReportHealth report, Refused refused,
               Clock clock);
  /// Removes the socket.
  ~HealthSocket();
  HealthSocket(const HealthSocket&) = delete;
  HealthSocket& operator=(const HealthSocket&) = delete;
  HealthSocket(HealthSocket&&) = delete;
  HealthSocket& operator=(HealthSocket&&) = delete;

  /// Takes datagrams that have come, at most 16, as a sender could keep the loop busy.
  void take_waiting();

 private:
  void wait();
  /// Takes one datagram; returns false if there is none.
  bool take();
  void refuse(const std::string& line);

  std::string path_;
  ReportHealth report_;
  Refused refused_;
  Clock clock_;
  std::optional<SteadyTime> last_refused_;
  std::uint64_t left_out_ = 0;
  boost::asio::posix::stream_descriptor socket_;
  /// Room for one byte more than the longest text.
  std::array<char, max_health_text + 1> buffer_{};
};

/// Hands a result to the agent that listens at this path. Throws Error that names the path if none does, or
/// if it has not taken earlier results.
void send_health(const std::string& path, const nodes::HealthReport& report);

}  // namespace resourced::agent

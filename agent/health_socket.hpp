// HealthSocket is where another process hands the agent results of health checks; under systemd that is
// resource-health.service. Each Unix datagram is one result (health_text.hpp).
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

  /// Listens at this path, and replaces the socket of an earlier agent there. Reports results from processes
  /// of root and of the agent's user. `refused` gets a line about any other datagram, at most one a minute,
  /// with the number of refused datagrams since the last line. Throws Error that names the path.
  HealthSocket(boost::asio::io_context& loop, std::string path, ReportHealth report, Refused refused,
               Clock clock);
  /// Removes the socket.
  ~HealthSocket();
  HealthSocket(const HealthSocket&) = delete;
  HealthSocket& operator=(const HealthSocket&) = delete;
  HealthSocket(HealthSocket&&) = delete;
  HealthSocket& operator=(HealthSocket&&) = delete;

  /// Takes datagrams that have come, at most 16, so that a sender cannot hold the loop.
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
  /// One byte longer than the longest text, so that a longer datagram is noticed.
  std::array<char, max_health_text + 1> buffer_{};
};

/// Sends a result to the agent that listens at this path. Throws Error that names the path if no agent
/// listens, or if its socket is full.
void send_health(const std::string& path, const nodes::HealthReport& report);

}  // namespace resourced::agent

// HealthChecks runs the health check of a node at an interval, without blocking the loop. Each check is a
// process of its own, `resource-agent health` (check_program.hpp), whose report comes through a pipe.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agent/check_program.hpp"
#include "core/time.hpp"
#include "os/process.hpp"

namespace resourced::agent {

class HealthChecks {
 public:
  /// Starts the first check at once. Each later one starts an interval after the start of the one before, or
  /// at its end if that is later. A check that cannot be run, or ends without a report, is reported as
  /// unhealthy.
  HealthChecks(boost::asio::io_context& loop, const CheckCommand& check, Seconds interval,
               ReportHealth report);
  /// Ends a running check: its process ends when the reader of its report is gone.
  ~HealthChecks() = default;
  HealthChecks(const HealthChecks&) = delete;
  HealthChecks& operator=(const HealthChecks&) = delete;
  HealthChecks(HealthChecks&&) = delete;
  HealthChecks& operator=(HealthChecks&&) = delete;

 private:
  void start();
  void spawn();
  void read();
  void take(std::string_view text);
  void wait_for_end();
  void start_later();

  boost::asio::io_context& loop_;
  /// The arguments of `resource-agent health`.
  std::vector<std::string> arguments_;
  Seconds interval_;
  ReportHealth report_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point started_;
  boost::asio::posix::stream_descriptor pipe_;
  pid_t process_id_ = -1;
  std::optional<os::Process> process_;
  std::array<char, 4096> buffer_{};
  std::string text_;
  bool has_reported_ = false;
};

}  // namespace resourced::agent

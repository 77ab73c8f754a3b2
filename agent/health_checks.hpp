// Runs the health check of a node again and again, without waiting for it in the loop. Each check is a
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

namespace resourced::agent {

class HealthChecks {
 public:
  /// Starts the first check at once, and then one each interval, or when the one before has ended, if that is
  /// later. A check that cannot be run, or ends without a report, is reported as unhealthy.
  HealthChecks(boost::asio::io_context& loop, const CheckCommand& check, Seconds interval,
               ReportHealth report);
  /// Ends a check that runs: its process ends when the reader of its report is gone.
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
  void on_end();
  void start_later();

  /// The arguments of `resource-agent health`.
  std::vector<std::string> arguments_;
  Seconds interval_;
  ReportHealth report_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point started_;
  boost::asio::posix::stream_descriptor pipe_;
  /// Readable when the check has ended.
  boost::asio::posix::stream_descriptor process_;
  int process_id_ = -1;
  std::array<char, 4096> buffer_{};
  std::string text_;
  bool has_reported_ = false;
};

}  // namespace resourced::agent

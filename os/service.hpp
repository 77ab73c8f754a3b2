// A program as a service: lines of its log, and the notifications that systemd expects from a service of
// Type=notify, with its watchdog. Without systemd nothing is sent.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <spdlog/common.h>
#include <spdlog/logger.h>

namespace resourced::os {

/// A logger with one line for each message: with a timestamp, or with the priority prefix of journald if
/// systemd collects the lines.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_log(const std::string& program, spdlog::sink_ptr sink);

/// A field of systemd's journal. The name has capital letters, digits and underscores.
struct JournalField {
  std::string name;
  std::string value;
};

/// Whether standard error goes to systemd's journal (JOURNAL_STREAM).
[[nodiscard]] bool logs_to_journal();

/// Logs a line as spdlog::info() does. In systemd's journal its entry has the fields, too.
void log_with_fields(const std::string& message, const std::vector<JournalField>& fields);

/// With a status line for `systemctl status`, if there is one.
void notify_ready(const std::string& status = {});
void notify_status(const std::string& status);
void notify_reloading();
void notify_stopping();

/// Feeds the watchdog from the loop, as often as WATCHDOG_USEC asks for: systemd restarts a program whose
/// loop hangs.
class Watchdog {
 public:
  explicit Watchdog(boost::asio::io_context& loop);

 private:
  void feed();

  std::chrono::microseconds interval_{0};
  boost::asio::steady_timer timer_;
};

}  // namespace resourced::os

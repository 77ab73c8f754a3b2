// The notifications that systemd expects from a service of Type=notify, and the watchdog. Without systemd
// nothing is sent. No function waits, so a socket that systemd does not read cannot block the loop.
#pragma once

#include <chrono>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace resourced::os {

/// Reports the end of the start, with a line for `systemctl status` unless `status` is empty.
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

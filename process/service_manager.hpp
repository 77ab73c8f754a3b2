// What systemd wants to hear from a service of Type=notify, and its watchdog. Without systemd nothing
// happens.
#pragma once

#include <chrono>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace resourced::process {

/// With a line about how the program is, if there is one.
void notify_ready(const std::string& status = {});
void notify_status(const std::string& status);
void notify_reloading();
void notify_stopping();

/// Feeds the watchdog from the loop, as often as WATCHDOG_USEC asks for: a loop that stands still is
/// restarted.
class Watchdog {
 public:
  explicit Watchdog(boost::asio::io_context& loop);

 private:
  void feed();

  std::chrono::microseconds interval_{0};
  boost::asio::steady_timer timer_;
};

}  // namespace resourced::process

#include "os/service.hpp"

#include <cstdint>
#include <string>

#include <systemd/sd-daemon.h>
#include <time.h>

namespace resourced::os {

void notify_ready(const std::string& status) {
  if (status.empty()) {
    sd_notify(0, "READY=1");
  } else {
    sd_notifyf(0, "READY=1\nSTATUS=%s", status.c_str());
  }
}

void notify_status(const std::string& status) { sd_notifyf(0, "STATUS=%s", status.c_str()); }

void notify_reloading() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto usec = static_cast<long long>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
  sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", usec);
}

void notify_stopping() { sd_notify(0, "STOPPING=1"); }

Watchdog::Watchdog(boost::asio::io_context& loop) : timer_(loop) {
  std::uint64_t timeout = 0;
  if (sd_watchdog_enabled(0, &timeout) <= 0) return;
  interval_ = std::chrono::microseconds(timeout / 2);
  feed();
}

void Watchdog::feed() {
  sd_notify(0, "WATCHDOG=1");
  timer_.expires_after(interval_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) feed();
  });
}

}  // namespace resourced::os

#include "agent/result_age.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "core/text/duration.hpp"

namespace resourced::agent {

ResultAge::ResultAge(boost::asio::io_context& loop, Seconds most, ReportHealth report,
                     std::function<void()> take_waiting)
    : most_(most), report_(std::move(report)), take_waiting_(std::move(take_waiting)), timer_(loop) {
  wait();
}

void ResultAge::take(const nodes::HealthReport& result) {
  wait();
  report_(result);
}

void ResultAge::wait() {
  timer_.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(most_));
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) judge();
  });
}

// Checks the expiry again, as the loop may have queued this call before it took a newer result.
void ResultAge::judge() {
  const auto is_over = [this] { return timer_.expiry() <= std::chrono::steady_clock::now(); };
  if (is_over()) take_waiting_();
  if (!is_over()) return;
  report_({1, fmt::format("no result of a health check for {}", text::format_duration(most_))});
}

}  // namespace resourced::agent

#include "agent/health_checks.hpp"

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/health_text.hpp"
#include "core/error.hpp"

namespace resourced::agent {

using boost::system::error_code;

namespace {

/// Path of the running program, valid even after an upgrade has replaced its file.
constexpr const char* this_program = "/proc/self/exe";

}  // namespace

HealthChecks::HealthChecks(boost::asio::io_context& loop, const CheckCommand& check, Seconds interval,
                           ReportHealth report)
    : loop_(loop),
      arguments_{"resource-agent", "health", fmt::format("--program={}", check.program),
                 fmt::format("--timeout={}s", check.timeout.count()),
                 fmt::format("--report-fd={}", STDOUT_FILENO)},
      interval_(interval),
      report_(std::move(report)),
      timer_(loop),
      pipe_(loop) {
  start();
}

void HealthChecks::start() {
  started_ = std::chrono::steady_clock::now();
  has_reported_ = false;
  text_.clear();
  try {
    spawn();
  } catch (const Error& error) {
    report_({1, fmt::format("health check cannot be started: {}", error.what())});
    return start_later();
  }
  read();
}

void HealthChecks::spawn() {
  os::Pipe report = os::make_pipe();
  process_id_ = os::start({.arguments = arguments_,
                           .file = this_program,
                           .descriptors = {-1, report.write.get(), STDERR_FILENO}});
  pipe_.assign(report.read.release());
}

void HealthChecks::read() {
  pipe_.async_read_some(boost::asio::buffer(buffer_), [this](error_code error, std::size_t size) {
    if (error == boost::asio::error::operation_aborted) return;
    if (error) {
      pipe_.close();
      return wait_for_end();
    }
    take({buffer_.data(), size});
    read();
  });
}

void HealthChecks::take(std::string_view text) {
  if (has_reported_ || text_.size() > max_health_text) return;
  text_ += text;
  if (!text_.ends_with('\n')) return;
  has_reported_ = true;
  try {
    report_(read_health_text(text_));
  } catch (const Error& error) {
    report_({1, fmt::format("health check: {}", error.what())});
  }
}

void HealthChecks::wait_for_end() {
  process_.emplace(loop_, process_id_, [this](int status) {
    process_.reset();
    if (!has_reported_) {
      report_(
          {1, WIFSIGNALED(status)
                  ? fmt::format("the process of the health check was ended by signal {}", WTERMSIG(status))
                  : fmt::format("the process of the health check ended without a result, status {}",
                                WEXITSTATUS(status))});
    }
    start_later();
  });
}

void HealthChecks::start_later() {
  timer_.expires_at(started_ + os::timer_duration(interval_));
  timer_.async_wait([this](error_code error) {
    if (!error) start();
  });
}

}  // namespace resourced::agent

#include "os/service.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

// Without the place in the source, which no reader of the journal needs.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

namespace resourced::os {

namespace {

/// The `<N>` prefix of sd-daemon(3), which journald removes from the line.
class Priority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    // By spdlog's levels: trace, debug, info, warning, error, critical, off.
    static constexpr std::array<char, 7> priorities{'7', '7', '6', '4', '3', '2', '7'};
    const std::array<char, 3> text{'<', priorities.at(static_cast<std::size_t>(message.level)), '>'};
    out.append(text.data(), text.data() + text.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<Priority>();
  }
};

}  // namespace

std::shared_ptr<spdlog::logger> make_log(const std::string& program, spdlog::sink_ptr sink) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  // systemd sets JOURNAL_STREAM for services whose output it collects.
  if (std::getenv("JOURNAL_STREAM") != nullptr) {
    formatter->add_flag<Priority>('*').set_pattern("%*%v");
  } else {
    formatter->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
  }
  auto logger = std::make_shared<spdlog::logger>(program, std::move(sink));
  logger->set_formatter(std::move(formatter));
  return logger;
}

bool logs_to_journal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) return false;
  return stream == std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

void log_with_fields(const std::string& message, const std::vector<JournalField>& fields) {
  if (!spdlog::should_log(spdlog::level::info)) return;
  static const bool to_journal = logs_to_journal();
  if (!to_journal) return spdlog::info("{}", message);
  std::vector<std::string> entry{"MESSAGE=" + message, "PRIORITY=6"};
  for (const JournalField& field : fields) entry.push_back(field.name + "=" + field.value);
  std::vector<iovec> parts;
  parts.reserve(entry.size());
  for (std::string& part : entry) parts.push_back({part.data(), part.size()});
  if (sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) < 0) spdlog::info("{}", message);
}

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

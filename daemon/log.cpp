#include "daemon/log.hpp"

#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace resourced::daemon {
namespace {

// The `<N>` of sd-daemon(3) that journald takes off the line.
class Priority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    // By spdlog's levels: trace, debug, info, warning, error, critical, off.
    static constexpr std::array<char, 7> priorities{'7', '7', '6', '4', '3', '2', '7'};
    const char text[] = {'<', priorities.at(static_cast<std::size_t>(message.level)), '>'};
    out.append(text, text + sizeof text);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Priority>(); }
};

}  // namespace

void set_up_logging(config::LogLevel level) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  // systemd sets JOURNAL_STREAM for services whose output it collects.
  if (std::getenv("JOURNAL_STREAM") != nullptr) {
    formatter->add_flag<Priority>('*').set_pattern("%*%v");
  } else {
    formatter->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
  }
  auto logger =
      std::make_shared<spdlog::logger>("resourced", std::make_shared<spdlog::sinks::stderr_sink_st>());
  logger->set_formatter(std::move(formatter));
  spdlog::set_default_logger(std::move(logger));
  set_log_level(level);
}

void set_log_level(config::LogLevel level) {
  spdlog::set_level(static_cast<spdlog::level::level_enum>(static_cast<int>(level)));
}

}  // namespace resourced::daemon

#include "process/log.hpp"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include <spdlog/pattern_formatter.h>

namespace resourced::process {

namespace {

/// The `<N>` of sd-daemon(3) that journald takes off the line.
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

}  // namespace resourced::process

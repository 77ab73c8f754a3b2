#include "daemon/log.hpp"

#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "process/service.hpp"

namespace resourced::daemon {

void set_up_logging(config::LogLevel level) {
  spdlog::set_default_logger(
      process::make_log("resourced", std::make_shared<spdlog::sinks::stderr_sink_st>()));
  set_log_level(level);
}

void set_log_level(config::LogLevel level) {
  spdlog::set_level(static_cast<spdlog::level::level_enum>(static_cast<int>(level)));
}

}  // namespace resourced::daemon

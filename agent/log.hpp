// The log of the agent: one line a message, with a time for people, and with the priority that journald reads
// where systemd collects the lines.
#pragma once

#include <iosfwd>
#include <memory>

#include <spdlog/logger.h>

namespace resourced::agent {

/// `out` must outlive the logger.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_log(std::ostream& out, spdlog::level::level_enum level);

}  // namespace resourced::agent

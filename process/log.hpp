// The log of a program that runs on: one line a message, with a time for people, and with the priority that
// journald reads where systemd collects the lines.
#pragma once

#include <memory>
#include <string>

#include <spdlog/common.h>
#include <spdlog/logger.h>

namespace resourced::process {

/// A logger that writes such lines to a sink of spdlog.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_log(const std::string& program, spdlog::sink_ptr sink);

}  // namespace resourced::process

// Logging to standard error: one line a message, with a time for people, and with the priority that journald
// reads where systemd collects the lines.
#pragma once

#include "config/config.hpp"

namespace resourced::daemon {

void set_up_logging(config::LogLevel level);
void set_log_level(config::LogLevel level);

}  // namespace resourced::daemon

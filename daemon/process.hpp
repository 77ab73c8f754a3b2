// Environment variables, the file descriptor limit and the log of the process.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "config/config.hpp"
#include "daemon/service/change_log.hpp"

namespace resourced::daemon {

/// Returns the value of an environment variable; nothing if it is not set.
[[nodiscard]] std::optional<std::string> environment(const std::string& name);

/// Raises the soft limit of open descriptors to the hard one if the system permits, and returns the limit in
/// force. libzmq 4.3.4 aborts the process when it has no descriptor to accept a connection on a Unix socket,
/// and with the usual limit of 1024 any local user could cause that.
std::size_t raise_descriptor_limit() noexcept;

/// Writes the line of a change to the log. In systemd's journal its parts are fields.
void write_change(const service::ChangeLine& line);

void set_up_logging(config::LogLevel level);
void set_log_level(config::LogLevel level);

}  // namespace resourced::daemon

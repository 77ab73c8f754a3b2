// What the process has from its system: clocks, the environment, and a number of file descriptors.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/time.hpp"

namespace resourced::daemon {

[[nodiscard]] WallTime wall_clock();
[[nodiscard]] SteadyTime steady_clock();

/// The value of an environment variable; nothing if there is none of this name.
[[nodiscard]] std::optional<std::string> environment(const std::string& name);

/// Raises the soft limit of open descriptors to the hard one, as far as the system lets it, and returns what
/// it is then. The usual 1024 are meant for programs that use select(2). libzmq 4.3.4 aborts the process when
/// it has no descriptor to accept a connection on a Unix socket, and any local user could make it.
std::size_t raise_descriptor_limit() noexcept;

}  // namespace resourced::daemon

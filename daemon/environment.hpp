// The environment of the process, as proto's defaults ask for it.
#pragma once

#include <optional>
#include <string>

namespace resourced::daemon {

/// The value of an environment variable; nothing if there is none of this name.
[[nodiscard]] std::optional<std::string> environment(const std::string& name);

}  // namespace resourced::daemon

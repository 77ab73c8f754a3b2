// Names of users on this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace resourced::os {

/// The name of a user id; nothing for one that no database of this machine knows, or if they cannot be asked.
[[nodiscard]] std::optional<std::string> user_name(std::uint32_t id);

}  // namespace resourced::os

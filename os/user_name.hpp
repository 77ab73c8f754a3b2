// Looks up names of users on this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace resourced::os {

/// Returns the name of a user id, or nothing if no user database knows the id or none can be asked.
[[nodiscard]] std::optional<std::string> user_name(std::uint32_t id);

}  // namespace resourced::os

// The `attributes` of a jobspec, as far as both kinds have them in common (RFC 14, RFC 25).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/request/json_path.hpp"

namespace resourced {

/// Checks an `attributes` object: `system` and `user` and nothing else, both objects; of the system
/// attributes duration (a number, not negative), cwd, environment and constraints (RFC 31). Which of them
/// must be there is for the caller. Throws Error EINVAL `path: reason`.
void check_attributes(const nlohmann::json& attributes, const JsonPath& path);

}  // namespace resourced

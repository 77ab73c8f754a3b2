// The `attributes` of a jobspec, as far as both kinds have them in common (RFC 14, RFC 25).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/jobspec/resource_graph.hpp"
#include "core/json/json_path.hpp"

namespace resourced {

/// Checks an `attributes` object: `system` and `user` and nothing else, both objects; of the system
/// attributes duration (a number, not negative), cwd, environment and constraints (RFC 31). Which of them
/// must be there is for the caller. Throws Error EINVAL `path: reason`.
void check_attributes(const nlohmann::json& attributes, const JsonPath& path);

/// Checks an environment: names with strings, or with null for those to unset. Throws Error EINVAL `path:
/// reason`.
void check_environment(const nlohmann::json& environment, const JsonPath& path);

/// Checks dependencies (RFC 26): a list of objects with at least `scheme` and `value`; for the schema at
/// least one, none twice, each with all four keys and no others. Throws Error EINVAL `path: reason`.
void check_dependencies(const nlohmann::json& dependencies, const JsonPath& path, CanonicalEdition edition);

}  // namespace resourced

// What a plain scalar of YAML means: the core schema of YAML 1.2 (section 10.3.2), so that `no` is a string,
// `0o17` is fifteen and `3600.` is a number.
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace resourced {

/// null, a boolean, a number, or otherwise the text itself as a string.
/// Throws Error EINVAL for an integer beyond 64 bits and a floating point number that is not finite.
[[nodiscard]] nlohmann::json resolve_yaml_scalar(std::string_view text);

}  // namespace resourced

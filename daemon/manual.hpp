// The settings as JSON, of which docs/man/generate makes resourced.toml(5).
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace resourced::daemon {

/// Returns `[{"name", "help", "sample", "settings": [{"key", "type", "default", "least", "most", "reload",
/// "help", "example"}]}]`, in the order of the sample file. Leaves out a bound that a setting does not have,
/// and an unset default; `reload` says what a reload does with a changed value.
[[nodiscard]] nlohmann::ordered_json describe_settings();

}  // namespace resourced::daemon

// The settings as JSON: docs/man/generate makes resourced.toml(5) of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace resourced::daemon {

/// `[{"name", "help", "sample", "settings": [{"key", "type", "default", "least", "most", "reload", "help",
/// "example"}]}]`, in the order of the sample file. A bound that a setting does not have is left out, and so
/// is a default that is nothing; `reload` says what a reload does with a changed value.
[[nodiscard]] nlohmann::ordered_json describe_settings();

}  // namespace resourced::daemon

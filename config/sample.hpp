// Detects whether a site still has the packaged sample configuration.
#pragma once

#include "config/config.hpp"

namespace resourced::config {

/// Whether [[resource.config]] has the entries of the sample (`config/resourced.toml`) and no others.
[[nodiscard]] bool has_sample_inventory(const Config& config);

}  // namespace resourced::config

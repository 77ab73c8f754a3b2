// A configuration and its inventory in a few lines for people: what `resourced --check` prints.
#pragma once

#include <string>

#include "config/config.hpp"
#include "config/inventory.hpp"

namespace resourced::config {

/// Lines of `NAME: VALUE`, each with a newline; lists are compressed, absent parts are left out.
/// Pass null for a configuration without an inventory of its own.
[[nodiscard]] std::string describe(const Config& config, const Inventory* inventory);

}  // namespace resourced::config

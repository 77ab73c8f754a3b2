// What the parts of the daemon want to know, taken from the configuration.
#pragma once

#include <optional>
#include <vector>

#include "config/config.hpp"
#include "config/inventory.hpp"
#include "core/module/partition.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/service/agents.hpp"

namespace resourced::daemon {

/// Throws Error EINVAL that names file, line and key for targets or a constraint that the inventory does not
/// know; of `absent` targets there is nothing to say.
[[nodiscard]] std::vector<PartitionRule> partition_rules(const config::Config& config,
                                                         const ResourceSet& inventory,
                                                         const config::Absent& absent = {});

/// Nothing where every target is online always.
[[nodiscard]] std::optional<service::Agents::Settings> agent_settings(const config::Config& config);

}  // namespace resourced::daemon

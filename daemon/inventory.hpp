// The inventory in force: the configured one, the one that an enclosing instance hands down, one that node
// agents report, or one that was loaded in the place of it and that the store has.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/config.hpp"
#include "config/inventory.hpp"
#include "core/error.hpp"
#include "core/module/command.hpp"
#include "core/rset/resource_set.hpp"
#include "core/time.hpp"

namespace resourced::daemon {

/// The inventory that the configuration names or an enclosing instance hands down; empty where node agents
/// tell it. Throws Error if there is none.
[[nodiscard]] config::Inventory configured_inventory(const config::Config& config);

/// The same without exclusions and queues, which may be meant for an R that was loaded.
[[nodiscard]] config::Inventory bare_inventory(config::Config config);

/// The configured inventory, bare with `fault` if what the configuration says of targets does not fit it: a
/// store may hold an R that was loaded, which that is meant for. Throws where there is no store.
[[nodiscard]] config::Inventory starting_inventory(const config::Config& config, const std::string& state,
                                                   std::optional<Error>& fault);

/// The configured R that a loaded one replaces, as the store keeps it; nothing where no inventory is
/// configured.
[[nodiscard]] std::optional<std::string> configured_text(const config::Config& config,
                                                         const config::Inventory& inventory);

/// Whether the store has an R that was loaded.
[[nodiscard]] bool was_loaded(const module::RecordedState& recorded);

/// Whether the R that was loaded in the place of this inventory still is in force.
[[nodiscard]] bool is_loaded(const config::Config& config, const config::Inventory& inventory,
                             const module::RecordedState& recorded);

/// A log line that names the R in force, for a store in which an R was loaded.
[[nodiscard]] std::string_view in_force(const config::Config& config, const config::Inventory& inventory,
                                        bool is_loaded);

/// The time at which the expiration in force was set at run time; the epoch if it is the configured one.
[[nodiscard]] WallTime expiration_set_at(const module::RecordedState& recorded,
                                         const rset::ResourceSet& configured);

/// The targets that a configuration may name although the inventory has them not: those that left for good,
/// or did not report, where agents tell the inventory.
[[nodiscard]] config::Absent absent_targets(const config::Config& config,
                                            const module::RecordedState& recorded);

/// Logs some hosts of queues that no node agent has reported.
void log_unreported(const config::Config& config, const rset::ResourceSet& found);

/// Applies the queues and exclusions of a configuration to an inventory that it does not name.
[[nodiscard]] config::Inventory discovered_inventory(const config::Config& config,
                                                     const rset::ResourceSet& resources,
                                                     config::Absent absent);

}  // namespace resourced::daemon

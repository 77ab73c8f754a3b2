// The inventory in force: configured, handed down by an enclosing instance, reported by node agents, or
// loaded by resource.reload and recorded in the store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/config.hpp"
#include "config/inventory.hpp"
#include "config/reload.hpp"
#include "core/error.hpp"
#include "core/module/command.hpp"
#include "core/module/module.hpp"
#include "core/nodes/nodes.hpp"
#include "core/rset/resource_set.hpp"
#include "core/time.hpp"

namespace resourced::daemon {

/// Returns the inventory that the configuration names or an enclosing instance hands down; an empty one if
/// node agents report it, or a Flux instance that attaches. Throws Error if there is no inventory.
[[nodiscard]] config::Inventory configured_inventory(const config::Config& config);

/// Returns the configured inventory without exclusions and queues, which may refer to targets of a loaded R.
[[nodiscard]] config::Inventory bare_inventory(config::Config config);

/// Returns the configured inventory. If exclusions or queues do not fit it and a store exists, sets `fault`
/// (else unset) to the error and returns bare_inventory(): they may refer to an R that was loaded. Without a
/// store throws the error.
[[nodiscard]] config::Inventory starting_inventory(const config::Config& config, const std::string& state,
                                                   std::optional<Error>& fault);

/// Returns the configured R, encoded as the store records it with an R that was loaded in its place; nothing
/// if no inventory is configured.
[[nodiscard]] std::optional<std::string> configured_text(const config::Config& config,
                                                         const config::Inventory& inventory);

/// Whether the R in force at the end of the log was loaded by resource.reload.
[[nodiscard]] bool was_loaded(const module::State& state);

/// Whether the recorded R was loaded in place of this inventory and is still in force.
[[nodiscard]] bool is_loaded(const config::Config& config, const config::Inventory& inventory,
                             const module::State& state);

/// Returns a log line that names the R in force, for a store in which an R was loaded.
[[nodiscard]] std::string_view in_force(const config::Config& config, const config::Inventory& inventory,
                                        bool is_loaded);

/// Returns the time at which the expiration in force was set at run time; the epoch if it is the configured
/// one.
[[nodiscard]] WallTime expiration_set_at(const module::State& state, const rset::ResourceSet& configured);

/// Returns a line about the drains and properties of targets that are not in the inventory
/// (engine::Engine::absent()), and about allocations that have such targets; empty for none.
[[nodiscard]] std::string waiting_for_hosts(const module::AbsentStates& absent, const module::Ledger& ledger);

/// Returns the targets that a configuration may name although the inventory does not have them: if agents
/// report the inventory, those that were removed by a shrink or did not report.
[[nodiscard]] config::Absent absent_targets(const config::Config& config, const module::State& state);

/// Returns the nodes that the discovery expects again: those of the recorded inventory, without removed ones.
[[nodiscard]] nodes::RecordedHosts recorded_hosts(const module::State& state);

/// Checks an R that an operator loads. Throws Error EINVAL if it has ranks of `size` and above, as a probable
/// mistake; with `force` logs it.
void check_size(const rset::ResourceSet& resources, std::uint64_t size, const std::string& path, bool force);

/// Logs how the discovery has ended, and with which hosts.
void log_discovered(const config::Config& config, const rset::ResourceSet& found);

/// Logs some hosts of queues that no node agent has reported.
void log_unreported(const config::Config& config, const rset::ResourceSet& found);

/// Applies the queues and exclusions of a configuration to an inventory that agents reported or that was
/// loaded.
[[nodiscard]] config::Inventory discovered_inventory(const config::Config& config,
                                                     const rset::ResourceSet& resources,
                                                     config::Absent absent);

/// Returns the inventory that a start would define with the recorded state; nothing if it would wait for
/// agents. Throws the error with which a start would fail. `fault` is that of starting_inventory().
[[nodiscard]] std::optional<config::Inventory> check_start(const config::Config& config,
                                                           config::Inventory inventory, module::State state,
                                                           const std::optional<Error>& fault);

/// Returns the command that makes a changed configuration take effect.
[[nodiscard]] module::ReloadCommand reload_command(const config::Config& next,
                                                   const config::Inventory& inventory,
                                                   const config::ReloadPlan& plan);

/// Logs which targets are still to return after a reload (module::UnshrinkEvent), if there are any.
void log_returning(const module::Module& module);

}  // namespace resourced::daemon

// The configuration as the command line names it, and what the parts of the daemon want to know of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/connection.hpp"
#include "config/config.hpp"
#include "config/inventory.hpp"
#include "core/module/partition.hpp"
#include "core/nodes/nodes.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/options.hpp"
#include "proto/uri.hpp"

namespace resourced::daemon {

/// Reads the configuration. An instance without an inventory of its own has the R that $RESOURCED_PARENT_R
/// names.
[[nodiscard]] config::Config load_configuration(const Options& options);

/// Logs the settings that are read past.
void log_passed_over(const config::Config& config);

/// The directory of the store: by the command line, the configuration, or the environment.
[[nodiscard]] std::string state_directory(const Options& options, const config::Config& config);

/// The endpoints of the command line, else those of the configuration, else the default ones. Throws Error
/// EINVAL for one that is none, EACCES for a tcp endpoint beyond loopback that has neither CURVE nor the
/// site's word that this is meant (`bus.insecure`).
[[nodiscard]] std::vector<proto::Endpoint> endpoints(const Options& options, const config::Bus& bus);

/// Whether a public key of `before` is not in `after`.
[[nodiscard]] bool revokes_keys(const config::Access& before, const config::Access& after);

/// A connection to the enclosing instance; null where none is to be followed. Throws Error that names file,
/// line and key for an address that cannot be used, or is one of this daemon's `own`.
[[nodiscard]] std::unique_ptr<client::Connection> parent_connection(const config::Config& config,
                                                                    const std::vector<proto::Endpoint>& own);

/// Throws Error EINVAL that names file, line and key for targets or a constraint that the inventory does not
/// know; of `absent` targets there is nothing to say.
[[nodiscard]] std::vector<module::PartitionRule> partition_rules(const config::Config& config,
                                                                 const rset::ResourceSet& inventory,
                                                                 const config::Absent& absent = {});

/// Nothing where every target is online always.
[[nodiscard]] std::optional<nodes::Settings> agent_settings(const config::Config& config);

}  // namespace resourced::daemon

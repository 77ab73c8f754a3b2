// Loads the configuration, and derives the settings of the daemon's parts from it and the command line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/connection.hpp"
#include "config/config.hpp"
#include "config/inventory.hpp"
#include "core/module/command.hpp"
#include "core/module/partition.hpp"
#include "core/nodes/nodes.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/commands.hpp"
#include "daemon/http/site.hpp"
#include "daemon/peers/access.hpp"
#include "proto/uri.hpp"

namespace resourced::daemon {

/// Reads the configuration. With resource.parent-uri and no inventory, the R is that of $RESOURCED_PARENT_R.
[[nodiscard]] config::Config load_configuration(const Options& options);

/// Logs the settings that are for other parts of Flux and ignored here, and a warning for the hosts of the
/// packaged sample.
void log_passed_over(const config::Config& config);

/// Logs warnings for values of the configuration that are probably not meant (config/remarks.hpp).
void log_remarks(const config::Config& config, const rset::ResourceSet& resources);

/// Returns the directory of the store: from the command line, the configuration, or the environment.
[[nodiscard]] std::string state_directory(const Options& options, const config::Config& config);

/// Returns the endpoints of the command line, else those of the configuration, else the default ones. Throws
/// Error EINVAL for an invalid endpoint, EACCES for a tcp endpoint beyond loopback without CURVE, unless
/// `bus.insecure` is set.
[[nodiscard]] std::vector<proto::Endpoint> endpoints(const Options& options, const config::Bus& bus);

/// Returns the address at which clients reach this daemon of a cluster: `cluster.advertise`, else its first
/// endpoint. Throws Error EINVAL that names the setting if no client can connect there.
[[nodiscard]] std::string advertised_uri(const Options& options, const config::Config& config);

/// Returns the rules of access, with the tokens of http.token-file. Throws Error that names a file that
/// cannot be used.
[[nodiscard]] peers::Access access(const config::Config& config);

/// Returns the conditions for HTTP. Throws Error that names a certificate or key that cannot be used.
[[nodiscard]] http::Site http_site(const config::Http& http);

/// Whether a public key of `before` is not in `after`.
[[nodiscard]] bool revokes_keys(const config::Access& before, const config::Access& after);

/// Makes a connection to the enclosing instance; null if none is to be followed. Throws Error that names
/// file, line and key for an address that cannot be used, or is one of this daemon's `own`.
[[nodiscard]] std::unique_ptr<client::Connection> parent_connection(const config::Config& config,
                                                                    const std::vector<proto::Endpoint>& own);

/// Returns the rules of partitions. Throws Error that names file, line and key for an invalid constraint, or
/// for targets that neither the inventory nor `absent` has, whether a partition or its constraint names them.
[[nodiscard]] std::vector<module::PartitionRule> partition_rules(const config::Config& config,
                                                                 const rset::ResourceSet& inventory,
                                                                 const config::Absent& absent = {});

[[nodiscard]] module::LedgerRules ledger_rules(const config::Config& config);

/// Returns the settings for agents; nothing if monitor.mode is not agents, as every target is then always
/// online.
[[nodiscard]] std::optional<nodes::Settings> agent_settings(const config::Config& config);

/// Returns a configuration that was read again, except that settings of a cluster's member which change at a
/// restart only keep their values.
[[nodiscard]] config::Config reloaded(config::Config next, const config::Config& now);

}  // namespace resourced::daemon

// Readers of values that need more than their type, and the rules between settings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "config/config.hpp"
#include "config/setting.hpp"
#include "config/table_reader.hpp"

namespace resourced::config {

/// Read the values of present keys. Throw Error EINVAL that names file, line and key.
[[nodiscard]] std::vector<ResourceEntry> read_entries(const TableReader& resource, const Setting& setting);
[[nodiscard]] rset::VerifyOptions read_verify(const TableReader& resource, const Setting& setting);
[[nodiscard]] text::Hostlist read_rerank(const TableReader& resource, const Setting& setting);
[[nodiscard]] std::vector<std::string> read_listen(const TableReader& bus, const Setting& setting);
[[nodiscard]] std::vector<std::string> read_http_listen(const TableReader& http, const Setting& setting);
[[nodiscard]] std::vector<std::string> read_http_names(const TableReader& http, const Setting& setting);
[[nodiscard]] std::vector<std::string> read_etcd(const TableReader& cluster, const Setting& setting);
[[nodiscard]] std::string read_member(const TableReader& cluster, const Setting& setting);
[[nodiscard]] std::string read_prefix(const TableReader& cluster, const Setting& setting);
[[nodiscard]] std::uint32_t read_socket_mode(const TableReader& bus, const Setting& setting);
[[nodiscard]] std::uint32_t read_socket_group(const TableReader& bus, const Setting& setting);
[[nodiscard]] std::uint32_t read_flux_user(const TableReader& flux, const Setting& setting);
[[nodiscard]] std::vector<Partition> read_partitions(const TableReader& acquire, const Setting& setting);
[[nodiscard]] Roles read_roles(const TableReader& access, const Setting& setting);
[[nodiscard]] std::vector<AccessRule> read_rules(const TableReader& access, const Setting& setting);
[[nodiscard]] std::vector<AccessKey> read_keys(const TableReader& access, const Setting& setting);

[[nodiscard]] nlohmann::json tell_socket_mode(const std::uint32_t& mode);
[[nodiscard]] nlohmann::json tell_roles(const Roles& roles);

/// Applies settings that override or complete others, after all have been read: [[resource.config]] replaces
/// an R file, noverify overrides [resource.verify], resource.history is store.history, and lost-after follows
/// offline-after. Throws Error EINVAL that names file, line and key for settings that contradict each other.
void settle(Config& config);

}  // namespace resourced::config

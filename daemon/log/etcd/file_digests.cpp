#include "daemon/log/etcd/file_digests.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/setting.hpp"
#include "core/error.hpp"
#include "os/sha256.hpp"

namespace resourced::daemon::log::etcd {
namespace {

using nlohmann::json;

// Length of a digest: enough to find accidental differences. Nothing is decided by a digest.
constexpr std::size_t digest_digits = 16;

std::string digest_of(std::string_view text) { return os::sha256(text).substr(0, digest_digits); }

// Replaces bytes that are not UTF-8, although TOML cannot contain them.
std::string digest_of(const json& value) {
  return digest_of(std::string_view(value.dump(-1, ' ', false, json::error_handler_t::replace)));
}

// Returns the excluded hosts, as the same hosts can be written as ranks; without a configured inventory the
// text.
json excluded(const config::Config& config, const config::Inventory& inventory) {
  if (config.resource.exclude.empty()) return nullptr;
  try {
    if (!config.resource.has_inventory()) return config.resource.exclude;
    const text::IdSet ranks = config::load_exclude(config, inventory.resources);
    // Ranks tell targets of the same host apart.
    return {inventory.resources.hosts(ranks).encode(),
            inventory.resources.hosts_repeat() ? ranks.encode() : ""};
  } catch (const Error&) {
    // The exclusions may fit only an R that was loaded in place of the configured one.
    return config.resource.exclude;
  }
}

json partitions(const config::Config& config) {
  json all = json::array();
  for (const config::Partition& partition : config.acquire.partitions) {
    all.push_back({partition.name, partition.targets ? json(*partition.targets) : json(),
                   partition.constraint ? json(*partition.constraint) : json()});
  }
  for (const config::Queue& queue : config.queues) all.push_back({queue.name, queue.hosts});
  return all;
}

void add_changed(json& all, const config::Config& config, const config::Setting& setting) {
  if (setting.value.tell == nullptr) return;
  json value = setting.value.tell(config);
  if (value == setting.value.tell(config::Config{})) return;
  all[fmt::format("{}.{}", setting.section, setting.key)] = std::move(value);
}

json monitoring(const config::Config& config) {
  constexpr std::array<std::string_view, 5> of_agents{"norestrict", "rediscover", "size", "discovery-timeout",
                                                      "shrink-lost"};
  json all = json::object();
  for (const config::Setting& setting : config::settings_of("monitor")) add_changed(all, config, setting);
  for (const config::Setting& setting : config::settings_of("resource")) {
    if (std::ranges::count(of_agents, setting.key) > 0) add_changed(all, config, setting);
  }
  const rset::VerifyOptions& verify = config.resource.verify;
  if (verify != rset::VerifyOptions()) {
    all["resource.verify"] = {static_cast<int>(verify.core), static_cast<int>(verify.gpu),
                              static_cast<int>(verify.hostname)};
  }
  return all;
}

}  // namespace

::resourced::cluster::FileDigests file_digests(const config::Config& config,
                                               const config::Inventory& inventory) {
  // Properties that queues give to their hosts are left out here, as partitions() has the queues.
  const std::string resources =
      config.resource.has_inventory() ? inventory.resources.without_local_properties().encode() : "";
  const json written = config::to_json(config);
  return {digest_of(std::string_view(resources)), digest_of(excluded(config, inventory)),
          digest_of(partitions(config)), digest_of(monitoring(config)),
          digest_of(written.value("access", json::object()))};
}

}  // namespace resourced::daemon::log::etcd

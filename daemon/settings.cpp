#include "daemon/settings.hpp"

#include <limits>

#include <fmt/format.h>

#include "core/constraint/query.hpp"
#include "core/error.hpp"

namespace resourced::daemon {

std::vector<PartitionRule> partition_rules(const config::Config& config, const ResourceSet& inventory,
                                           const config::Absent& absent) {
  std::vector<PartitionRule> rules;
  for (std::size_t i = 0; i < config.acquire.partitions.size(); ++i) {
    const config::Partition& partition = config.acquire.partitions[i];
    const std::string key =
        fmt::format("acquire.partition[{}].{}", i, partition.targets ? "targets" : "constraint");
    PartitionRule rule{partition.name, std::nullopt, {}};
    try {
      if (partition.targets) {
        rule.targets = config::parse_present_targets(*partition.targets, inventory, absent);
      } else {
        rule.constraint = parse_query(*partition.constraint);
      }
    } catch (const Error& error) {
      throw config.fault(key, error.what(), error.errnum());
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::optional<service::Agents::Settings> agent_settings(const config::Config& config) {
  const config::Monitor& monitor = config.monitor;
  if (monitor.mode != config::MonitorMode::agents) return std::nullopt;
  service::Agents::Settings settings;
  settings.monitor = {monitor.torpid_after, monitor.offline_after, monitor.grace,     monitor.coalesce,
                      monitor.flap_count,   monitor.flap_window,   monitor.lost_after};
  settings.expect_all = config.resource.shrink_lost;
  if (!config.resource.shrink_lost) {
    settings.monitor.lost_after = std::numeric_limits<double>::infinity();
  }
  settings.verify = config.resource.verify;
  settings.norestrict = config.resource.norestrict;
  return settings;
}

}  // namespace resourced::daemon

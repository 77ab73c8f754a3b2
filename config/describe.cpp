#include "config/describe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/duration.hpp"

namespace resourced::config {

namespace {

void add_inventory(std::string& text, const Inventory& inventory) {
  const ResourceSet& resources = inventory.resources;
  const ResourceCounts counts = resources.counts();
  text += fmt::format("inventory: {} nodes, {} cores, {} gpus\n", counts.nodes, counts.cores, counts.gpus);
  text += fmt::format("nodelist: {}\n", resources.nodelist().encode());
  for (const auto& [name, ranks] : resources.properties())
    text += fmt::format("property {}: {} nodes, {}\n", name, ranks.count(), resources.hosts(ranks).encode());
  if (resources.scheduling()) text += "scheduling: present\n";
  if (!inventory.exclude.empty())
    text += fmt::format("excluded: {} nodes, {}\n", inventory.exclude.count(),
                        resources.hosts(inventory.exclude).encode());
}

}  // namespace

std::string describe(const Config& config, const Inventory* inventory) {
  std::string text;
  for (const std::string& file : config.files()) text += fmt::format("file: {}\n", file);
  if (!config.resource.path.empty()) text += fmt::format("R: {}\n", config.resource.path);
  if (inventory) add_inventory(text, *inventory);
  for (const Partition& partition : config.acquire.partitions) {
    text += fmt::format("partition {}: {} {}\n", partition.name, partition.targets ? "targets" : "constraint",
                        partition.targets ? *partition.targets : partition.constraint.value_or(""));
  }
  for (const std::string& uri : config.bus.listen) text += fmt::format("listen: {}\n", uri);
  if (!config.resource.parent_uri.empty()) text += fmt::format("parent: {}\n", config.resource.parent_uri);
  if (config.monitor.mode == MonitorMode::agents) {
    text += fmt::format("monitor: agents, torpid after {}, offline after {}\n",
                        format_duration(config.monitor.torpid_after),
                        format_duration(config.monitor.offline_after));
  }
  if (!config.store.directory.empty()) text += fmt::format("state: {}\n", config.store.directory);
  return text;
}

}  // namespace resourced::config

#include "config/inventory.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/remarks.hpp"
#include "core/nodes/parent.hpp"
#include "core/rset/builder.hpp"
#include "core/rset/targets.hpp"
#include "core/text/duration.hpp"
#include "core/text/node_name.hpp"
#include "core/text/quote.hpp"
#include "os/file.hpp"

namespace resourced::config {

using rset::ResourceSet;
using text::Hostlist;

namespace {

/// Maximum size of a scheduling key: the graph of a large cluster has hundreds of bytes for each core.
constexpr std::size_t max_scheduling_text = std::size_t{256} << 20;

std::string entry_key(std::size_t index) { return fmt::format("resource.config[{}]", index); }

/// Throws an error that names the first entry with a host that no entry gives cores, if there is one.
void refuse_host_without_cores(const Config& config) {
  const auto& entries = config.resource.entries;
  Hostlist provided;
  for (const ResourceEntry& entry : entries) {
    if (!entry.cores.empty()) provided.append(entry.hosts);
  }
  const text::HostIndex index(provided);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].cores.empty()) continue;
    entries[i].hosts.for_each([&](std::string_view host) {
      if (!index.find(host))
        throw config.fault(entry_key(i), fmt::format("host {} has no cores", text::quoted(host)));
    });
  }
}

ResourceSet build(const Config& config) {
  const auto& entries = config.resource.entries;
  std::size_t hosts = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    hosts += entries[i].hosts.size();
    if (hosts > max_named_hosts)
      throw config.fault(entry_key(i) + ".hosts", fmt::format("more than {} hosts in all", max_named_hosts));
  }
  rset::InventoryBuilder builder;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    config.checked(entry_key(i), [&] {
      builder.add(entries[i].hosts, entries[i].cores, entries[i].gpus, entries[i].properties);
    });
  }
  try {
    return builder.finish();
  } catch (const Error& error) {
    // The builder names the host, but not its entry.
    refuse_host_without_cores(config);
    throw config.fault("resource.config", error.what(), error.errnum());
  }
}

/// Passes the content of a file that a key names to `parse`. Errors name the key, and those of `parse` the
/// file.
template <class Parse>
auto parse_named(const Config& config, std::string_view key, const std::string& path, std::size_t max,
                 const Parse& parse) {
  return config.checked(key, [&] {
    const std::string text = os::read_file(path, max);
    try {
      return parse(text);
    } catch (const Error& error) {
      throw Error(error.errnum(), fmt::format("{}: {}", path, error.what()));
    }
  });
}

ResourceSet nodes_of(std::string_view text) {
  ResourceSet resources = ResourceSet::parse(text);
  text::check_node_names(resources.nodelist());
  return resources;
}

// The R comes from the environment, so errors name the variable instead of a file and line.
ResourceSet read_parent_r(const std::string& text_or_path) {
  try {
    if (text_or_path.starts_with('{')) return nodes_of(text_or_path);
    return nodes_of(os::read_file(text_or_path, ResourceSet::max_text));
  } catch (const Error& error) {
    throw Error(error.errnum(), fmt::format("$RESOURCED_PARENT_R: {}", error.what()));
  }
}

ResourceSet read_resources(const Config& config) {
  if (!config.resource.entries.empty()) return build(config);
  if (!config.resource.path.empty())
    return parse_named(config, "resource.path", config.resource.path, ResourceSet::max_text, nodes_of);
  return read_parent_r(config.resource.parent_r);
}

ResourceSet enclosed(const Config& config, const ResourceSet& handed_down) {
  const Hostlist& order = config.resource.rerank;
  return config.checked(order.empty() ? "resource.parent-uri" : "resource.rerank", [&] {
    return nodes::enclosed_inventory(handed_down, order.empty() ? std::nullopt : std::optional(order));
  });
}

void add_scheduling(const Config& config, ResourceSet& resources) {
  parse_named(config, "resource.scheduling", config.resource.scheduling, max_scheduling_text,
              [&](const std::string& text) { resources.set_scheduling(text); });
}

}  // namespace

Inventory load_inventory(const Config& config) {
  if (!config.resource.has_inventory())
    throw Error(ENOENT, "no inventory: neither resource.config nor resource.path is configured");
  Inventory inventory;
  inventory.resources = read_resources(config);
  if (!config.resource.scheduling.empty()) add_scheduling(config, inventory.resources);
  if (!config.resource.parent_uri.empty()) {
    inventory.handed_down = inventory.resources;
    inventory.resources = enclosed(config, *inventory.handed_down);
    inventory.method = "job-info";
  }
  add_queue_properties(config, inventory.resources);
  inventory.exclude = load_exclude(config, inventory.resources);
  return inventory;
}

text::IdSet load_exclude(const Config& config, const ResourceSet& resources, const Absent& absent) {
  if (config.resource.exclude.empty()) return {};
  return config.checked("resource.exclude",
                        [&] { return parse_present_targets(config.resource.exclude, resources, absent); });
}

Hostlist excluded_hosts(const Config& config) {
  if (config.resource.exclude.empty()) return {};
  return config.checked("resource.exclude", [&] {
    Hostlist hosts = rset::hosts_of_targets(config.resource.exclude).value_or(Hostlist{});
    check_hosts(hosts);
    hosts.unique();
    return hosts;
  });
}

namespace {

/// Returns a text such as `2 nodes, a[2-3]`.
std::string nodes_text(const text::IdSet& ranks, const ResourceSet& resources) {
  const std::string hosts = resources.hosts(ranks).encode();
  return fmt::format("{} nodes{}{}", ranks.count(), hosts.empty() ? "" : ", ", hosts);
}

void add_inventory(std::string& text, const Inventory& inventory) {
  const ResourceSet& resources = inventory.resources;
  const rset::ResourceCounts counts = resources.counts();
  text += fmt::format("inventory: {} nodes, {} cores, {} gpus\n", counts.nodes, counts.cores, counts.gpus);
  text += fmt::format("nodelist: {}\n", resources.nodelist().encode());
  for (const auto& [name, ranks] : resources.properties())
    text += fmt::format("property {}: {}\n", name, nodes_text(ranks, resources));
  if (resources.scheduling()) text += "scheduling: present\n";
  if (!inventory.exclude.empty())
    text += fmt::format("excluded: {}\n", nodes_text(inventory.exclude, resources));
}

}  // namespace

std::string describe(const Config& config, const Inventory* inventory) {
  std::string text;
  for (const std::string& file : config.files()) text += fmt::format("file: {}\n", file);
  if (!config.resource.path.empty()) text += fmt::format("R: {}\n", config.resource.path);
  if (inventory) add_inventory(text, *inventory);
  for (const Partition& partition : config.acquire.partitions) {
    const std::string rule = fmt::format("{} {}", partition.targets ? "targets" : "constraint",
                                         partition.targets ? *partition.targets : *partition.constraint);
    text += fmt::format(
        "partition {}: {}\n", partition.name,
        inventory
            ? fmt::format("{} ({})",
                          nodes_text(targets_of(partition, inventory->resources), inventory->resources), rule)
            : rule);
  }
  if (inventory) {
    for (const auto& [name, ranks] : targets_of_queues(config, inventory->resources))
      text += fmt::format("queue {}: {}\n", name, nodes_text(ranks, inventory->resources));
  }
  for (const std::string& uri : config.bus.listen) text += fmt::format("listen: {}\n", uri);
  if (!config.flux.socket.empty()) text += fmt::format("flux: {}\n", config.flux.socket);
  if (!config.resource.parent_uri.empty()) text += fmt::format("parent: {}\n", config.resource.parent_uri);
  if (config.monitor.mode == MonitorMode::agents) {
    text += fmt::format("monitor: agents, torpid after {}, offline after {}\n",
                        text::format_duration(config.monitor.torpid_after),
                        text::format_duration(config.monitor.offline_after));
  }
  if (!config.store.directory.empty()) text += fmt::format("state: {}\n", config.store.directory);
  return text;
}

}  // namespace resourced::config

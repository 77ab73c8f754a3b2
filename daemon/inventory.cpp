#include "daemon/inventory.hpp"

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/json/utf8.hpp"
#include "core/module/partition.hpp"
#include "core/text/host_index.hpp"
#include "core/text/hostlist.hpp"
#include "daemon/settings.hpp"
#include "os/log.hpp"
#include "os/loop.hpp"

namespace resourced::daemon {

using rset::ResourceSet;

config::Inventory configured_inventory(const config::Config& config) {
  if (config.resource.has_inventory()) return config::load_inventory(config);
  if (!config.resource.parent_uri.empty()) {
    throw config.fault("resource.parent-uri",
                       "no R from the parent: neither resource.path nor $RESOURCED_PARENT_R is set", ENOENT);
  }
  if (config.monitor.mode == config::MonitorMode::agents || !config.flux.socket.empty()) return {};
  throw config.fault("resource", "no inventory: set path or config, or monitor.mode to agents", ENOENT);
}

config::Inventory bare_inventory(config::Config config) {
  config.resource.exclude.clear();
  config.queues.clear();
  return configured_inventory(config);
}

config::Inventory starting_inventory(const config::Config& config, const std::string& state,
                                     std::optional<Error>& fault) {
  fault.reset();
  try {
    return configured_inventory(config);
  } catch (const Error& error) {
    const bool is_bare = config.resource.exclude.empty() && config.queues.empty();
    if (is_bare || !std::filesystem::exists(state)) throw;
    fault = error;
    return bare_inventory(config);
  }
}

std::optional<std::string> configured_text(const config::Config& config, const config::Inventory& inventory) {
  if (!config.resource.has_inventory()) return std::nullopt;
  return inventory.resources.without_local_properties().encode();
}

bool was_loaded(const module::State& state) {
  const module::KeptInventory& kept = state.kept_inventory;
  return kept.resources && kept.method == module::DefineMethod::reload;
}

bool is_loaded(const config::Config& config, const config::Inventory& inventory, const module::State& state) {
  const bool may_be_loaded =
      !inventory.handed_down && (config.resource.has_inventory() || !config.resource.rediscover);
  return was_loaded(state) && may_be_loaded &&
         state.kept_inventory.replaced == configured_text(config, inventory);
}

std::string_view in_force(const config::Config& config, const config::Inventory& inventory, bool is_loaded) {
  if (is_loaded)
    return "using the R that resource.reload loaded: the configured inventory has not changed since";
  if (inventory.handed_down) return "using the R of the enclosing instance instead of the R that was loaded";
  if (config.resource.has_inventory())
    return "using the configured inventory: it has changed since an R was loaded";
  return "node agents report the inventory, which replaces the R that was loaded";
}

WallTime expiration_set_at(const module::State& state, const ResourceSet& configured) {
  const auto& expiration = state.expiration;
  return expiration && expiration->configured == configured.expiration() ? expiration->timestamp : WallTime();
}

std::string waiting_for_hosts(const module::AbsentStates& absent, const module::Ledger& ledger) {
  auto names = absent.awaited();
  const bool may_forget = !names.empty();
  std::vector<std::string> waiting;
  const auto count = [&](std::size_t number, std::string_view what, std::string_view of = "") {
    if (number > 0) waiting.push_back(fmt::format("{} {}{}{}", number, what, number == 1 ? "" : "s", of));
  };
  count(absent.drains.size(), "drain");
  count(absent.scheduled.size(), "scheduled drain");
  count(absent.properties.size(), "change", " of properties");
  std::size_t allocations = 0;
  // Cores and gpus that are absent on present targets, by host.
  std::map<std::string, std::pair<text::IdSet, text::IdSet>> parts;
  for (const auto& [name, allocation] : ledger.all()) {
    const text::HostIndex there(allocation->absent.empty() ? text::Hostlist()
                                                           : allocation->resources.nodelist());
    for (const module::AbsentResources& part : allocation->absent) {
      if (there.find(part.target.host)) {
        parts[part.target.host].first |= part.cores;
        parts[part.target.host].second |= part.gpus;
      } else {
        names.insert(part.target.host);
      }
    }
    if (!allocation->absent.empty()) ++allocations;
  }
  count(allocations, "allocation");
  std::vector<std::string> lacking;
  if (!names.empty()) {
    text::Hostlist hosts;
    for (const std::string& name : names) hosts.append(name);
    lacking.push_back(hosts.encode());
  }
  constexpr std::size_t most_parts = 8;
  for (const auto& [host, numbers] : parts) {
    if (lacking.size() > most_parts) {
      lacking.emplace_back("more");
      break;
    }
    const auto named = [](std::string_view what, const text::IdSet& ids) {
      if (ids.empty()) return std::string();
      return ids.count() == 1 ? fmt::format("{}{}", what, ids.encode())
                              : fmt::format("{}[{}]", what, ids.encode());
    };
    const auto& [cores, gpus] = numbers;
    lacking.push_back(fmt::format("{}{}{} of {}", named("core", cores),
                                  cores.empty() || gpus.empty() ? "" : ",", named("gpu", gpus), host));
  }
  if (lacking.empty()) return {};
  return fmt::format(
      "the inventory lacks {}: {} waiting for them to return; resourcectl list --absent lists them{}",
      fmt::join(lacking, ", "), fmt::join(waiting, ", "),
      may_forget ? ", resourcectl forget HOSTS drops them" : "");
}

config::Absent absent_targets(const config::Config& config, const module::State& state) {
  config::Absent absent;
  if (config.resource.has_inventory()) return absent;
  config::excluded_hosts(config).for_each([&](std::string_view host) { absent.hosts.emplace(host); });
  const std::vector<module::TargetName> shrunk = state.shrunk_names();
  for (const module::TargetName& target : shrunk) absent.hosts.insert(target.host);
  // The rank of a node that was removed before the last discovery is unknown, so accept any rank.
  absent.any_rank = !shrunk.empty();
  if (const auto& before = state.kept_inventory.resources) absent.ranks = before->ranks();
  if (config.resource.size) absent.ranks |= text::IdSet::range(0, *config.resource.size - 1);
  return absent;
}

nodes::RecordedHosts recorded_hosts(const module::State& state) {
  nodes::RecordedHosts hosts;
  if (const auto& before = state.kept_inventory.resources) {
    hosts.ranks = before->ranks();
    hosts.hosts = before->nodelist();
  }
  for (const module::TargetName& target : state.shrunk_names()) {
    if (target.ordinal == 0) hosts.gone.insert(target.host);
  }
  return hosts;
}

void check_size(const ResourceSet& resources, std::uint64_t size, const std::string& path, bool force) {
  if (resources.ranks().last() < size) return;
  // Flux's error text, with its misspelling.
  if (!force) {
    throw Error(EINVAL,
                fmt::format("resource object contains ranks execeeding size={} (override with -f))", size));
  }
  os::log_warning("{}: the R has ranks of {} and above, beyond the size of this instance", path, size);
}

void log_discovered(const config::Config& config, const ResourceSet& found) {
  const text::Hostlist& hosts = found.nodelist();
  const std::string names = json_text::printable_line(hosts.encode());
  std::size_t counted = hosts.size();
  config::excluded_hosts(config).for_each(
      [&](std::string_view host) { counted += hosts.find(std::string(host)) ? 0 : 1; });
  const std::optional<std::uint32_t>& size = config.resource.size;
  if (size && counted < *size) {
    os::log_warning("discovery has timed out: {} of {} nodes have reported, {}", counted, *size, names);
  } else {
    os::log_info("discovery is complete: {} reported, {}",
                 hosts.size() == 1 ? "1 node has" : fmt::format("{} nodes have", hosts.size()), names);
  }
}

void log_unreported(const config::Config& config, const ResourceSet& found) {
  constexpr std::size_t most_named = 16;
  for (const config::Queue& queue : config.queues) {
    if (queue.hosts == config::every_host) continue;
    const rset::HostSearch search = found.ranks_of(text::Hostlist::parse(queue.hosts), most_named);
    if (search.unknown.empty()) continue;
    os::log_warning("queues.{}.hosts: hosts that did not report are left out: {}{}", queue.name,
                    fmt::join(search.unknown, ","), search.unknown.size() > most_named ? ",..." : "");
  }
}

config::Inventory discovered_inventory(const config::Config& config, const ResourceSet& resources,
                                       config::Absent absent) {
  // Agents report no properties. Those of queues come from the configuration, which may have changed since.
  ResourceSet effective = resources.without_local_properties();
  // Queues and `exclude` may name nodes that have not reported.
  absent.any_host = !config.resource.has_inventory();
  config::add_queue_properties(config, effective, absent);
  text::IdSet exclude = config::load_exclude(config, effective, absent);
  return {std::move(effective), "dynamic-discovery", std::move(exclude)};
}

std::optional<config::Inventory> check_start(const config::Config& config, config::Inventory inventory,
                                             module::State state, const std::optional<Error>& fault) {
  const bool loaded = is_loaded(config, inventory, state);
  if (!loaded && fault) throw Error(*fault);
  if (!loaded && was_loaded(state)) state.kept_inventory = {};
  const config::Absent absent = absent_targets(config, state);
  const auto& kept = state.kept_inventory.resources;
  if (loaded) {
    inventory = discovered_inventory(config, *kept, absent);
  } else if (!config.resource.has_inventory()) {
    if (!kept || config.resource.rediscover) return std::nullopt;
    inventory = discovered_inventory(config, *kept, absent);
  }
  module::DefineCommand start;
  start.inventory = std::make_shared<const rset::ResourceSet>(inventory.resources);
  start.exclude = inventory.exclude;
  const auto rules = partition_rules(config, inventory.resources, absent);
  for (const module::Event& event : module::Module(std::move(state)).start(start, os::wall_clock())) {
    const auto* define = std::get_if<module::DefineEvent>(&event.body);
    if (define == nullptr) continue;
    (void)divide_at_start(rules, *define);
    inventory.resources = *define->inventory;
    inventory.exclude = define->exclude;
  }
  return inventory;
}

module::ReloadCommand reload_command(const config::Config& next, const config::Inventory& inventory,
                                     const config::ReloadPlan& plan) {
  module::ReloadCommand command;
  command.exclude = inventory.exclude;
  command.property_add = plan.property_add;
  command.property_remove = plan.property_remove;
  if (next.monitor.mode == config::MonitorMode::fixed) command.online = inventory.resources.ranks();
  return command;
}

void log_returning(const module::Module& module) {
  if (module.returning().empty()) return;
  os::log_warning(
      "{}: not returned to the inventory yet, as a scheduler has acquired resources: reload again when none "
      "has, or restart the daemon",
      module.configured().hosts(module.returning()).encode());
}

}  // namespace resourced::daemon

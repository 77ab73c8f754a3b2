// How a start takes up what was recorded before it: ranks may be renumbered and hosts gone, so the host
// decides (RFC 44, drain and undrain carry the nodelist for this).
#include <algorithm>
#include <map>
#include <utility>

#include "core/module/module.hpp"

namespace resourced {
namespace {

std::optional<IdSet::Id> present_rank(const ResourceSet& inventory, IdSet::Id rank, const std::string& host) {
  if (inventory.ranks().contains(rank) && inventory.host(rank) == host) return rank;
  return inventory.rank_of(host);
}

void take_up_properties(ResourceSet& inventory, const std::vector<RecordedProperty>& recorded) {
  std::map<std::pair<std::string, bool>, IdSet> changes;
  for (const RecordedProperty& property : recorded) {
    if (const auto rank = inventory.rank_of(property.host)) {
      changes[{property.name, property.present}].insert(*rank);
    }
  }
  for (const auto& [change, ranks] : changes) {
    const auto& [name, present] = change;
    if (present) {
      inventory.add_property(name, ranks);
    } else {
      inventory.remove_property(name, ranks);
    }
  }
}

// Everything that was changed at run time, put on top of the configuration.
ResourceSet effective_inventory(const StartCommand& command) {
  ResourceSet inventory = *command.inventory;
  IdSet shrunk;
  for (const std::string& host : command.recorded.shrunk) {
    if (const auto rank = inventory.rank_of(host)) shrunk.insert(*rank);
  }
  if (!shrunk.empty()) inventory.remove_ranks(shrunk);
  take_up_properties(inventory, command.recorded.properties);
  const auto& expiration = command.recorded.expiration;
  if (expiration && expiration->configured == inventory.expiration()) {
    inventory.set_expiration(expiration->value);
  }
  return inventory;
}

std::map<DrainTable::Key, IdSet> present_drains(const ResourceSet& inventory,
                                                const std::vector<RecordedDrain>& recorded) {
  std::map<DrainTable::Key, IdSet> drains;
  for (const RecordedDrain& drain : recorded) {
    if (const auto rank = present_rank(inventory, drain.rank, drain.host)) {
      drains[{drain.timestamp, drain.reason}].insert(*rank);
    }
  }
  return drains;
}

}  // namespace

std::vector<Module::StartEvent> Module::start(const StartCommand& command, double now) {
  auto inventory = std::make_shared<const ResourceSet>(effective_inventory(command));
  const IdSet exclude = command.exclude & inventory->ranks();

  std::vector<StartEvent> events;
  const IdSet online = command.online & inventory->ranks();
  events.push_back({{now, RestartEvent{inventory->ranks(), online, inventory->nodelist()}}, false});
  events.push_back({{now, DefineEvent{command.method, inventory, exclude, command.inventory->properties(),
                                      command.inventory->expiration()}},
                    false});
  IdSet undrain;
  for (const auto& [key, ranks] : present_drains(*inventory, command.recorded.drains)) {
    undrain |= ranks & exclude;
    DrainEvent drain{ranks, inventory->hosts(ranks), key.reason, Overwrite::nothing};
    events.push_back({{key.timestamp, std::move(drain)}, true});
  }
  if (!undrain.empty()) {
    Hostlist hosts = inventory->hosts(undrain);
    events.push_back({{now, UndrainEvent{std::move(undrain), std::move(hosts), std::nullopt}}, false});
  }
  return events;
}

}  // namespace resourced

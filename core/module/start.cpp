// Applies the recorded state at a start. Ranks may be renumbered and hosts gone, so targets are found by name
// (RFC 44: drain and undrain have the nodelist for this).
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/module/module.hpp"
#include "core/module/rank_map.hpp"

namespace resourced::module {

using rset::ResourceSet;
using text::IdSet;

namespace {

// Returns the properties that were added.
ResourceSet::Properties take_up_properties(ResourceSet& inventory, const ResourceSet& configured,
                                           const std::vector<RecordedProperty>& recorded) {
  std::map<std::pair<std::string, bool>, IdSet> changes;
  for (const RecordedProperty& property : recorded) {
    const auto rank = rank_of(property.target, configured);
    if (!rank || !inventory.ranks().contains(*rank)) continue;
    changes[{property.name, property.present}].insert(*rank);
  }
  ResourceSet::Properties kept;
  for (const auto& [change, ranks] : changes) {
    const auto& [name, present] = change;
    if (present) {
      inventory.add_property(name, ranks);
      kept.emplace(name, ranks);
    } else {
      inventory.remove_property(name, ranks);
    }
  }
  return kept;
}

// The configuration with all changes of run time applied.
struct Effective {
  ResourceSet inventory;
  ResourceSet::Properties kept_properties;
};

Effective effective_inventory(const StartCommand& command) {
  ResourceSet inventory = *command.inventory;
  IdSet shrunk;
  for (const TargetName& target : command.recorded.shrunk) {
    if (const auto rank = rank_of(target, *command.inventory)) shrunk.insert(*rank);
  }
  if (!shrunk.empty()) inventory.remove_ranks(shrunk);
  auto kept = take_up_properties(inventory, *command.inventory, command.recorded.properties);
  const auto& expiration = command.recorded.expiration;
  if (expiration && expiration->configured == inventory.expiration()) {
    inventory.set_expiration(expiration->value);
  }
  return {std::move(inventory), std::move(kept)};
}

std::map<DrainTable::Key, IdSet> present_drains(const IdSet& ranks, const ResourceSet& configured,
                                                const std::vector<RecordedDrain>& recorded) {
  std::map<DrainTable::Key, IdSet> drains;
  for (const RecordedDrain& drain : recorded) {
    const auto rank = rank_of(drain.target, configured);
    if (rank && ranks.contains(*rank))
      drains[{drain.timestamp, drain.reason, drain.by, drain.until}].insert(*rank);
  }
  return drains;
}

}  // namespace

std::vector<Module::StartEvent> Module::start(const StartCommand& command, WallTime now) {
  Effective effective = effective_inventory(command);
  auto inventory = std::make_shared<const ResourceSet>(std::move(effective.inventory));
  const IdSet exclude = command.exclude & inventory->ranks();

  std::vector<StartEvent> events;
  const IdSet online = command.online & inventory->ranks();
  events.push_back({{now, RestartEvent{inventory->ranks(), online, inventory->nodelist()}}, false});
  events.push_back({{now, DefineEvent{command.method, inventory, exclude, command.inventory,
                                      std::move(effective.kept_properties)}},
                    false});
  IdSet undrain;
  for (const auto& [key, ranks] :
       present_drains(inventory->ranks(), *command.inventory, command.recorded.drains)) {
    undrain |= ranks & exclude;
    DrainEvent drain{ranks, inventory->hosts(ranks), key.reason, Overwrite::nothing, key.until};
    events.push_back({{key.timestamp, std::move(drain), key.by}, true});
  }
  for (const auto& [key, ranks] :
       present_drains(inventory->ranks(), *command.inventory, command.recorded.scheduled)) {
    ScheduleEvent schedule{ranks, inventory->hosts(ranks), key.timestamp, key.until, key.reason};
    events.push_back({{now, std::move(schedule), key.by}, true});
  }
  if (!undrain.empty()) {
    text::Hostlist hosts = inventory->hosts(undrain);
    events.push_back({{now, UndrainEvent{std::move(undrain), std::move(hosts), std::nullopt}}, false});
  }
  Ledger ledger;
  for (const RecordedAllocation& allocation : command.recorded.allocations) {
    AllocEvent event{{ledger.restore(allocation, *command.inventory)}};
    (void)ledger.apply(event);
    events.push_back({{now, std::move(event)}, true});
  }
  return events;
}

RecalledInstance recall_instance(const RecordedState& recorded) {
  RecalledInstance recalled;
  ResourceSet inventory = recorded.inventory.resources ? *recorded.inventory.resources : ResourceSet();
  const ResourceSet brokers = targets_of_brokers(recorded.brokers, {});
  // A process may have ended when the store had the brokers in their present order, and R in the former one.
  const IdSet common = inventory.ranks() & brokers.ranks();
  if (inventory.hosts(common) != brokers.hosts(common))
    inventory = renumbered(inventory, RankMap(inventory, brokers), brokers);
  const ResourceSet targets = targets_of_brokers(recorded.brokers, inventory);
  for (const auto& [key, ranks] : present_drains(targets.ranks(), targets, recorded.drains))
    recalled.drains.push_back({ranks, key.timestamp, key.reason, key.by, key.until});
  std::ranges::copy_if(recorded.drains, std::back_inserter(recalled.absent),
                       [&](const RecordedDrain& drain) { return !rank_of(drain.target, targets); });
  if (inventory.empty()) return recalled;
  DefineCommand& definition = recalled.definition.emplace();
  definition.method = recorded.inventory.method;
  if (recorded.expiration && recorded.expiration->configured == inventory.expiration())
    inventory.set_expiration(recorded.expiration->value);
  for (const RecordedProperty& property : recorded.properties) {
    const auto rank = rank_of(property.target, targets);
    if (!rank || !inventory.ranks().contains(*rank)) continue;
    auto& changes = property.present ? definition.property_add : definition.property_remove;
    changes[property.name].insert(*rank);
  }
  definition.inventory = std::make_shared<const ResourceSet>(std::move(inventory));
  return recalled;
}

std::vector<Event> Module::define(const DefineCommand& command, WallTime now) const {
  const ResourceSet addressable = targets_of_brokers(brokers_, *command.inventory);
  ResourceSet inventory = *command.inventory;
  DefineEvent define;
  for (const auto& [name, ranks] : command.property_add) {
    const IdSet present = ranks & inventory.ranks();
    inventory.add_property(name, present);
    if (!present.empty()) define.kept_properties.emplace(name, present);
  }
  for (const auto& [name, ranks] : command.property_remove)
    inventory.remove_property(name, ranks & inventory.ranks());
  define.method = command.method;
  define.inventory = std::make_shared<const ResourceSet>(std::move(inventory));
  define.exclude = command.exclude & addressable.ranks();
  define.configured = command.inventory;
  IdSet undrain = define.exclude & states_.drains.ranks();
  std::vector<Event> events{{now, std::move(define)}};
  if (!undrain.empty()) {
    text::Hostlist hosts = addressable.hosts(undrain);
    events.push_back({now, UndrainEvent{std::move(undrain), std::move(hosts), std::nullopt}});
  }
  return events;
}

std::vector<Event> Module::decide_on(const LoadCommand& command, WallTime now) const {
  const rset::ResourceSet& next = *command.inventory;
  const RankMap map(inventory_, next);
  std::vector<Event> events;
  // Agents have to say hello again, so silence is measured anew.
  if (!states_.torpid.empty()) events.push_back({now, LivelyEvent{states_.torpid}});
  DefineEvent define;
  define.method = DefineMethod::reload;
  define.inventory = command.inventory;
  define.exclude = command.exclude & next.ranks();
  define.configured = command.inventory;
  define.loaded = DefineEvent::Loaded{command.replaced};
  const IdSet excluded = define.exclude;
  events.push_back({now, std::move(define)});
  if (IdSet undrain = map(states_.drains.ranks()) & excluded; !undrain.empty()) {
    text::Hostlist hosts = next.hosts(undrain);
    events.push_back({now, UndrainEvent{std::move(undrain), std::move(hosts), std::nullopt}});
  }
  if (IdSet online = (command.online & next.ranks()) - map(states_.online); !online.empty()) {
    events.push_back({now, OnlineEvent{std::move(online)}});
  }
  return events;
}

TargetStates renumbered(const TargetStates& states, const RankMap& map) {
  const auto moved = [&map](const DrainTable& table) {
    DrainTable other;
    for (const auto& [key, ranks] : table.groups()) (void)other.drain(map(ranks), key, Overwrite::nothing);
    return other;
  };
  return {moved(states.drains), map(states.online), map(states.torpid), moved(states.scheduled)};
}

void Module::move_states(const rset::ResourceSet& next) {
  states_ = renumbered(states_, RankMap(inventory_, next));
  pending_ = {};
  waiting_ = {};
  look_again(states_.scheduled.ranks());
  available_ = {};
}

}  // namespace resourced::module

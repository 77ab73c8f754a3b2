// Decides the events of a start, a definition and a load. Ranks may be renumbered and hosts gone, so targets
// are found by name (RFC 44: drain and undrain have the nodelist for this).
#include <map>
#include <utility>

#include "core/module/module.hpp"
#include "core/module/rank_map.hpp"

namespace resourced::module {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

std::map<Drain, IdSet> present_drains(const IdSet& ranks, const ResourceSet& configured,
                                      const std::vector<RecordedDrain>& recorded) {
  std::map<Drain, IdSet> drains;
  for (const RecordedDrain& drain : recorded) {
    const auto rank = rank_of(drain.target, configured);
    if (rank && ranks.contains(*rank)) drains[drain].insert(*rank);
  }
  return drains;
}

/// Returns the properties that differ from the configured ones in an inventory that follows that of `state`,
/// by the ranks of the new inventory.
PropertyChanges properties_in(const State& state, const RankMap& map, const ResourceSet& configured,
                              const IdSet& ranks) {
  PropertyChanges changes = state.run_time_properties();
  for (auto* properties : {&changes.added, &changes.removed}) {
    for (auto& [name, targets] : *properties) targets = map(targets) & ranks;
  }
  for (const RecordedProperty& property : state.absent.properties) {
    const auto rank = rank_of(property.target, configured);
    if (!rank || !ranks.contains(*rank)) continue;
    (property.present ? changes.added : changes.removed)[property.name].insert(*rank);
  }
  for (auto* properties : {&changes.added, &changes.removed})
    std::erase_if(*properties, [](const auto& property) { return property.second.empty(); });
  return changes;
}

}  // namespace

std::vector<Event> Module::start(const DefineCommand& command, WallTime now) const {
  const ResourceSet& next = *command.inventory;
  const RankMap map = RankMap::by_name(configured(), next);
  ResourceSet effective = next;
  IdSet gone = map(shrunk() - returning());
  for (const TargetName& target : state_.absent.shrunk) {
    if (const auto rank = rank_of(target, next)) gone.insert(*rank);
  }
  if (!gone.empty()) effective.remove_ranks(gone);
  PropertyChanges properties = properties_in(state_, map, next, effective.ranks());
  for (const auto& [name, ranks] : properties.added) effective.add_property(name, ranks);
  for (const auto& [name, ranks] : properties.removed) effective.remove_property(name, ranks);
  if (state_.expiration && state_.expiration->configured == effective.expiration())
    effective.set_expiration(state_.expiration->value);
  const auto started = std::make_shared<const ResourceSet>(std::move(effective));

  const IdSet exclude = command.exclude & started->ranks();
  IdSet drained = map(drains().ranks());
  for (const auto& [key, ranks] : present_drains(started->ranks(), next, state_.absent.drains))
    drained |= ranks;
  std::vector<Event> events;
  events.push_back(
      {now, RestartEvent{started->ranks(), command.online & started->ranks(), started->nodelist()}});
  events.push_back(
      {now, DefineEvent{command.method, started, exclude, command.inventory, std::move(properties.added)}});
  if (IdSet undrain = drained & exclude; !undrain.empty()) {
    Hostlist hosts = started->hosts(undrain);
    events.push_back({now, UndrainEvent{std::move(undrain), std::move(hosts), std::nullopt}});
  }
  return events;
}

std::optional<DefineCommand> recall_definition(const State& state) {
  const KeptInventory& kept = state.kept_inventory;
  ResourceSet inventory = kept.resources ? *kept.resources : ResourceSet();
  const ResourceSet brokers = targets_of_brokers(state.brokers, {});
  // The store may have the brokers in their present order and R in the former one, if a process ended in
  // between.
  const IdSet common = inventory.ranks() & brokers.ranks();
  if (inventory.hosts(common) != brokers.hosts(common))
    inventory = renumbered(inventory, RankMap(inventory, brokers), brokers);
  if (inventory.empty()) return std::nullopt;
  const ResourceSet targets = targets_of_brokers(state.brokers, inventory);
  DefineCommand definition;
  definition.method = kept.method;
  if (state.expiration && state.expiration->configured == inventory.expiration())
    inventory.set_expiration(state.expiration->value);
  for (const RecordedProperty& property : state.by_name().properties) {
    const auto rank = rank_of(property.target, targets);
    if (!rank || !inventory.ranks().contains(*rank)) continue;
    auto& changes = property.present ? definition.property_add : definition.property_remove;
    changes[property.name].insert(*rank);
  }
  definition.inventory = std::make_shared<const ResourceSet>(std::move(inventory));
  return definition;
}

std::vector<Event> Module::decide_on(const DefineCommand& command, WallTime now) const {
  const bool loads = !has_brokers();
  const ResourceSet targets = targets_of_brokers(brokers(), *command.inventory);
  ResourceSet next = *command.inventory;
  DefineEvent define;
  for (const auto& [name, ranks] : command.property_add) {
    const IdSet present = ranks & next.ranks();
    next.add_property(name, present);
    if (!present.empty()) define.kept_properties.emplace(name, present);
  }
  for (const auto& [name, ranks] : command.property_remove) next.remove_property(name, ranks & next.ranks());
  define.method = loads ? DefineMethod::reload : command.method;
  define.inventory = std::make_shared<const ResourceSet>(std::move(next));
  define.exclude = command.exclude & targets.ranks();
  define.configured = command.inventory;
  if (loads) define.loaded = DefineEvent::Loaded{command.replaced};
  const RankMap map(loads ? inventory() : targets, targets);
  IdSet undrain = map(state_.targets.drains.ranks()) & define.exclude;
  IdSet online = (command.online & targets.ranks()) - map(state_.targets.online);
  std::vector<Event> events;
  // Agents have to say hello again, so silence is measured anew and no target is torpid.
  if (loads && !state_.targets.torpid.empty()) events.push_back({now, LivelyEvent{state_.targets.torpid}});
  events.push_back({now, std::move(define)});
  if (!undrain.empty()) {
    Hostlist hosts = targets.hosts(undrain);
    events.push_back({now, UndrainEvent{std::move(undrain), std::move(hosts), std::nullopt}});
  }
  if (!online.empty()) events.push_back({now, OnlineEvent{std::move(online)}});
  return events;
}

}  // namespace resourced::module

// Events were checked when they were decided, so nothing here can fail.
#include "core/module/apply.hpp"

#include <utility>
#include <variant>

#include "core/module/module.hpp"
#include "core/rset/operations.hpp"

namespace resourced::module {

using rset::ResourceSet;
using text::IdSet;

namespace {

struct FoldStates {
  void operator()(const RestartEvent& event) const {
    changes.undrained = states.drains.undrain(states.drains.ranks() - event.ranks);
    states.online = event.online;
    states.torpid.clear();
  }
  void operator()(const DefineEvent& /*event*/) const {}
  void operator()(const UpdateEvent& event) const {
    if (event.shrink.empty() || event.lost) return;
    changes.undrained = states.drains.undrain(event.shrink);
    states.online -= event.shrink;
    states.torpid -= event.shrink;
  }
  void operator()(const DrainEvent& event) const {
    changes.drained = states.drains.drain(event.ranks, timestamp, event.reason, event.overwrite);
  }
  void operator()(const UndrainEvent& event) const { changes.undrained = states.drains.undrain(event.ranks); }
  void operator()(const OnlineEvent& event) const { states.online |= event.ranks; }
  void operator()(const OfflineEvent& event) const {
    states.online -= event.ranks;
    states.torpid -= event.ranks;
  }
  void operator()(const TorpidEvent& event) const { states.torpid |= event.ranks; }
  void operator()(const LivelyEvent& event) const { states.torpid -= event.ranks; }

  WallTime timestamp;
  TargetStates& states;
  DrainChanges& changes;
};

IdSet with_property(const ResourceSet& set, const std::string& name) {
  const auto found = set.properties().find(name);
  return found == set.properties().end() ? IdSet{} : found->second;
}

IdSet broker_ranks(const text::Hostlist& brokers) {
  return brokers.empty() ? IdSet{} : IdSet::range(0, static_cast<IdSet::Id>(brokers.size() - 1));
}

}  // namespace

void fold_inventory(const DefineEvent& event, ResourceSet& inventory) { inventory = *event.inventory; }

void fold_inventory(const UpdateEvent& event, ResourceSet& inventory) {
  for (const auto& [name, ranks] : event.property_add) inventory.add_property(name, ranks);
  for (const auto& [name, ranks] : event.property_remove) inventory.remove_property(name, ranks);
  if (event.expiration) inventory.set_expiration(*event.expiration);
  if (!event.shrink.empty()) inventory.remove_ranks(event.shrink);
}

void fold_inventory(const EventBody& event, ResourceSet& inventory) {
  if (const auto* define = std::get_if<DefineEvent>(&event)) fold_inventory(*define, inventory);
  if (const auto* update = std::get_if<UpdateEvent>(&event)) fold_inventory(*update, inventory);
}

DrainChanges fold_states(const Event& event, TargetStates& states) {
  DrainChanges changes;
  std::visit(FoldStates{event.timestamp, states, changes}, event.body);
  return changes;
}

ResourceSet Module::addressable_with(const ResourceSet& inventory) const {
  const IdSet brokers = broker_ranks(brokers_);
  const IdSet others = inventory.ranks() - brokers;
  text::Hostlist hosts = brokers_;
  hosts.append(inventory.hosts(others));
  return {{{brokers | others, IdSet{0}, IdSet{}}}, std::move(hosts)};
}

Outcome Module::apply(const Event& event) {
  Outcome outcome;
  static_cast<DrainChanges&>(outcome) = fold_states(event, states_);
  std::visit([&](const auto& body) { apply_to(body, outcome.delta); }, event.body);
  ++state_version_;
  return outcome;
}

void Module::settle(const IdSet& touched, Delta& delta) {
  const IdSet now =
      (touched & inventory_.ranks() & states_.online) - exclude_ - states_.drains.ranks() - states_.torpid;
  const IdSet before = touched & available_;
  const IdSet up = now - before;
  const IdSet down = before - now;
  available_ |= up;
  available_ -= down;
  delta.up |= up;
  delta.down |= down;
}

void Module::apply_to(const RestartEvent& event, Delta& delta) {
  if (event.of_brokers) {
    brokers_ = event.nodelist;
    addressable_ = addressable_with(inventory_);
  }
  settle(inventory_.ranks(), delta);
}

void Module::apply_to(const DefineEvent& event, Delta& delta) {
  delta.property_add = rset::new_properties(*event.inventory, inventory_);
  delta.property_remove = rset::new_properties(inventory_, *event.inventory);
  if (event.inventory->expiration() != inventory_.expiration()) {
    delta.expiration = event.inventory->expiration();
  }
  const IdSet touched = inventory_.ranks() | event.inventory->ranks();
  if (event.loaded) move_states(*event.inventory);
  fold_inventory(event, inventory_);
  if (has_brokers()) addressable_ = addressable_with(inventory_);
  exclude_ = event.exclude;
  configured_ = event.configured ? *event.configured : inventory_;
  kept_properties_ = event.kept_properties;
  method_ = event.method;
  defined_ = true;
  ++inventory_version_;
  settle(touched, delta);
}

void Module::apply_to(const UpdateEvent& event, Delta& delta) {
  fold_inventory(event, inventory_);
  for (const auto& [name, ranks] : event.property_add)
    kept_properties_[name] |= ranks - with_property(configured_, name);
  for (const auto& [name, ranks] : event.property_remove) kept_properties_[name] -= ranks;
  delta.property_add = event.property_add;
  delta.property_remove = event.property_remove;
  delta.expiration = event.expiration;
  // Includes excluded targets: a scheduler may have acquired them before they were excluded.
  delta.shrink = event.shrink;
  delta.down = event.shrink;
  if (!event.lost) exclude_ -= event.shrink;
  available_ -= event.shrink;
  if (const IdSet gone = event.shrink - broker_ranks(brokers_); has_brokers() && !gone.empty())
    addressable_.remove_ranks(gone);
  ++inventory_version_;
}

template <class OfRanks>
void Module::apply_to(const OfRanks& event, Delta& delta) {
  settle(event.ranks, delta);
}

}  // namespace resourced::module

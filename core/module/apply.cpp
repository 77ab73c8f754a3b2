// Folding events into the state. Nothing here can fail: what an event says was checked when it was decided.
#include <variant>

#include "core/module/module.hpp"

namespace resourced {
namespace {

// The properties in `now` that are not in `before`, by name.
ResourceSet::Properties gained(const ResourceSet::Properties& before, const ResourceSet::Properties& now) {
  ResourceSet::Properties result;
  for (const auto& [name, ranks] : now) {
    const auto old = before.find(name);
    IdSet fresh = old == before.end() ? ranks : ranks - old->second;
    if (!fresh.empty()) result.emplace(name, std::move(fresh));
  }
  return result;
}

IdSet with_property(const ResourceSet& set, const std::string& name) {
  const auto found = set.properties().find(name);
  return found == set.properties().end() ? IdSet{} : found->second;
}

struct FoldInventory {
  void operator()(const DefineEvent& event) const { inventory = *event.inventory; }
  void operator()(const UpdateEvent& event) const {
    for (const auto& [name, ranks] : event.property_add) inventory.add_property(name, ranks);
    for (const auto& [name, ranks] : event.property_remove) inventory.remove_property(name, ranks);
    if (event.expiration) inventory.set_expiration(*event.expiration);
    if (!event.shrink.empty()) inventory.remove_ranks(event.shrink);
  }
  template <class AboutStates>
  void operator()(const AboutStates& /*event*/) const {}

  ResourceSet& inventory;
};

}  // namespace

void fold_inventory(const EventBody& event, ResourceSet& inventory) {
  std::visit(FoldInventory{inventory}, event);
}

Outcome Module::apply(const Event& event) {
  Outcome outcome;
  std::visit([&](const auto& body) { apply_to(body, event.timestamp, outcome); }, event.body);
  ++state_version_;
  return outcome;
}

void Module::settle(const IdSet& touched, Delta& delta) {
  const IdSet now = (touched & inventory_.ranks() & online_) - exclude_ - drains_.ranks() - torpid_;
  const IdSet before = touched & available_;
  const IdSet up = now - before;
  const IdSet down = before - now;
  available_ |= up;
  available_ -= down;
  delta.up |= up;
  delta.down |= down;
}

void Module::apply_to(const RestartEvent& event, WallTime /*timestamp*/, Outcome& outcome) {
  online_ = event.online;
  settle(inventory_.ranks(), outcome.delta);
}

void Module::apply_to(const DefineEvent& event, WallTime /*timestamp*/, Outcome& outcome) {
  outcome.delta.property_add = gained(inventory_.properties(), event.inventory->properties());
  outcome.delta.property_remove = gained(event.inventory->properties(), inventory_.properties());
  if (event.inventory->expiration() != inventory_.expiration()) {
    outcome.delta.expiration = event.inventory->expiration();
  }
  const IdSet touched = inventory_.ranks() | event.inventory->ranks();
  if (event.loaded) move_states(*event.inventory);
  FoldInventory{inventory_}(event);
  exclude_ = event.exclude;
  configured_ = event.configured ? *event.configured : inventory_;
  kept_properties_ = event.kept_properties;
  method_ = event.method;
  defined_ = true;
  ++inventory_version_;
  settle(touched, outcome.delta);
}

void Module::apply_to(const UpdateEvent& event, WallTime /*timestamp*/, Outcome& outcome) {
  FoldInventory{inventory_}(event);
  for (const auto& [name, ranks] : event.property_add)
    kept_properties_[name] |= ranks - with_property(configured_, name);
  for (const auto& [name, ranks] : event.property_remove) kept_properties_[name] -= ranks;
  outcome.delta.property_add = event.property_add;
  outcome.delta.property_remove = event.property_remove;
  outcome.delta.expiration = event.expiration;
  if (!event.shrink.empty()) shrink(event.shrink, outcome);
  ++inventory_version_;
}

void Module::shrink(const IdSet& ranks, Outcome& outcome) {
  outcome.undrained = drains_.undrain(ranks);
  // Excluded ones, too: a scheduler may have acquired them before.
  outcome.delta.shrink = ranks;
  outcome.delta.down = ranks;
  exclude_ -= ranks;
  online_ -= ranks;
  torpid_ -= ranks;
  available_ -= ranks;
}

void Module::apply_to(const DrainEvent& event, WallTime timestamp, Outcome& outcome) {
  outcome.drained = drains_.drain(event.ranks, timestamp, event.reason, event.overwrite);
  settle(event.ranks, outcome.delta);
}

void Module::apply_to(const UndrainEvent& event, WallTime /*timestamp*/, Outcome& outcome) {
  outcome.undrained = drains_.undrain(event.ranks);
  settle(event.ranks, outcome.delta);
}

void Module::apply_to(const OnlineEvent& event, WallTime /*timestamp*/, Outcome& outcome) {
  online_ |= event.ranks;
  settle(event.ranks, outcome.delta);
}

void Module::apply_to(const OfflineEvent& event, WallTime /*timestamp*/, Outcome& outcome) {
  online_ -= event.ranks;
  torpid_ -= event.ranks;
  settle(event.ranks, outcome.delta);
}

void Module::apply_to(const TorpidEvent& event, WallTime /*timestamp*/, Outcome& outcome) {
  torpid_ |= event.ranks;
  settle(event.ranks, outcome.delta);
}

void Module::apply_to(const LivelyEvent& event, WallTime /*timestamp*/, Outcome& outcome) {
  torpid_ -= event.ranks;
  settle(event.ranks, outcome.delta);
}

}  // namespace resourced

#include "core/module/fold.hpp"

#include <variant>

namespace resourced::module {

using rset::ResourceSet;

namespace {

struct FoldStates {
  void operator()(const RestartEvent& event) const {
    changes.undrained = states.drains.undrain(states.drains.ranks() - event.ranks);
    states.online = event.online;
    states.torpid.clear();
  }
  void operator()(const DefineEvent& /*event*/) const {}
  void operator()(const UpdateEvent& event) const {
    if (event.shrink.empty()) return;
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

}  // namespace resourced::module

// The application of an event cannot fail: it was checked when it was decided.
#include "core/module/module.hpp"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/invariant.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/targets.hpp"

namespace resourced::module {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

struct FoldStates {
  void operator()(const RestartEvent& event) const {
    changes.undrained = states.drains.undrain(states.drains.ranks() - event.ranks);
    changes.unscheduled = states.scheduled.undrain(states.scheduled.ranks() - event.ranks);
    states.online = event.online;
    states.torpid.clear();
  }
  void operator()(const DefineEvent& /*event*/) const {}
  void operator()(const UpdateEvent& event) const {
    if (event.shrink.empty() || event.lost) return;
    changes.undrained = states.drains.undrain(event.shrink);
    changes.unscheduled = states.scheduled.undrain(event.shrink);
    states.online -= event.shrink;
    states.torpid -= event.shrink;
  }
  void operator()(const UnshrinkEvent& /*event*/) const {}
  void operator()(const DrainEvent& event) const {
    if (event.scheduled) changes.unscheduled = states.scheduled.undrain(event.ranks);
    changes.drained =
        states.drains.drain(event.ranks, {timestamp, event.reason, by, event.until}, event.overwrite);
  }
  void operator()(const UndrainEvent& event) const {
    changes.undrained = states.drains.undrain(event.ranks);
    if (!event.keeps_scheduled) changes.unscheduled = states.scheduled.undrain(event.ranks);
  }
  void operator()(const ScheduleEvent& event) const {
    changes.scheduled = states.scheduled.drain(event.ranks, {event.from, event.reason, by, event.until},
                                               Overwrite::reason_and_timestamp);
  }
  void operator()(const CancelEvent& event) const {
    changes.unscheduled = states.scheduled.undrain(event.ranks);
  }
  void operator()(const OnlineEvent& event) const { states.online |= event.ranks; }
  void operator()(const OfflineEvent& event) const {
    states.online -= event.ranks;
    states.torpid -= event.ranks;
  }
  void operator()(const TorpidEvent& event) const { states.torpid |= event.ranks; }
  void operator()(const LivelyEvent& event) const { states.torpid -= event.ranks; }
  // The ledger is no state of targets.
  void operator()(const AllocEvent& /*event*/) const {}
  void operator()(const FreeEvent& /*event*/) const {}

  WallTime timestamp;
  const std::optional<Actor>& by;
  TargetStates& states;
  DrainChanges& changes;
};

// These look up a single rank; IdSet::includes() and intersects() go through the whole set.
bool all_in(const IdSet& ranks, const IdSet& set) { return (ranks - set).empty(); }
bool none_in(const IdSet& ranks, const IdSet& set) { return (ranks & set).empty(); }

// Checks that an event of states names only targets whose state it changes: holders and the journal are told
// of each.
struct CheckChanges {
  void operator()(const UndrainEvent& event) const {
    RESOURCED_INVARIANT(all_in(event.ranks, states.drains.ranks()));
  }
  void operator()(const OnlineEvent& event) const {
    RESOURCED_INVARIANT(none_in(event.ranks, states.online));
  }
  void operator()(const OfflineEvent& event) const {
    RESOURCED_INVARIANT(all_in(event.ranks, states.online));
  }
  void operator()(const TorpidEvent& event) const {
    RESOURCED_INVARIANT(none_in(event.ranks, states.torpid));
  }
  void operator()(const LivelyEvent& event) const { RESOURCED_INVARIANT(all_in(event.ranks, states.torpid)); }
  template <class Other>
  void operator()(const Other& /*event*/) const {}

  const TargetStates& states;
};

IdSet with_property(const ResourceSet& set, const std::string& name) {
  const auto found = set.properties().find(name);
  return found == set.properties().end() ? IdSet{} : found->second;
}

IdSet broker_ranks(const text::Hostlist& brokers) {
  return brokers.empty() ? IdSet{} : IdSet::range(0, static_cast<IdSet::Id>(brokers.size() - 1));
}

}  // namespace

std::vector<Event> Module::decide(const Command& command, WallTime now) const {
  const bool concerns_states = std::holds_alternative<DrainCommand>(command) ||
                               std::holds_alternative<UndrainCommand>(command) ||
                               std::holds_alternative<MonitorCommand>(command);
  if (!defined_ && !(has_brokers() && concerns_states)) throw Error(EAGAIN, "the inventory is not known yet");
  return std::visit([&](const auto& known) { return decide_on(known, now); }, command);
}

std::vector<Event> Module::lose(const IdSet& targets, WallTime now) const {
  UpdateEvent update;
  update.shrink = targets & inventory_.ranks();
  if (!loses_targets() || update.shrink.empty()) return {};
  update.shrink_nodelist = addressable().hosts(update.shrink);
  update.lost = true;
  return {{now, std::move(update)}};
}

std::vector<Event> Module::decide_on(const MonitorCommand& command, WallTime now) const {
  IdSet offline = command.offline & states_.online;
  // Lost before offline, so that schedulers get one change that has both.
  std::vector<Event> events;
  if (!command.instance_left) events = lose(offline, now);
  IdSet online = (command.online & addressable().ranks()) - (states_.online - offline);
  const IdSet torpid_before = states_.torpid - offline;
  IdSet torpid = (command.torpid & ((states_.online - offline) | online)) - torpid_before;
  IdSet lively = command.lively & (torpid_before | torpid);
  if (!offline.empty()) events.push_back({now, OfflineEvent{std::move(offline)}});
  // Torpid before online, so that no scheduler sees such a target come up in between.
  if (!torpid.empty()) events.push_back({now, TorpidEvent{std::move(torpid)}});
  if (!online.empty()) events.push_back({now, OnlineEvent{std::move(online)}});
  if (!lively.empty()) events.push_back({now, LivelyEvent{std::move(lively)}});
  return events;
}

PropertyChanges Module::property_changes() const {
  const ResourceSet& now = recorded_inventory();
  return {rset::new_properties(now, configured_), rset::new_properties(configured_, now)};
}

std::vector<PropertyState> Module::property_states(const std::string& name, const IdSet& ranks) const {
  const auto of = [&](const ResourceSet::Properties& properties) {
    const auto found = properties.find(name);
    return found == properties.end() ? IdSet{} : found->second & ranks;
  };
  const IdSet now = of(inventory_.properties());
  const IdSet configured = of(configured_.properties());
  using Difference = PropertyState::Difference;
  std::vector<PropertyState> states;
  const auto add = [&](IdSet some, Difference difference) {
    if (!some.empty()) states.push_back({name, std::move(some), difference});
  };
  const auto found = kept_properties_.find(name);
  const IdSet kept = found == kept_properties_.end() ? IdSet{} : found->second & now;
  add(((now & configured) - kept) | (ranks - now - configured), Difference::same);
  add((now - configured) | kept, Difference::added);
  add(configured - now, Difference::removed);
  return states;
}

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
  std::visit(FoldStates{event.timestamp, event.by, states, changes}, event.body);
  return changes;
}

ResourceSet targets_of_brokers(const Hostlist& brokers, const ResourceSet& inventory) {
  const IdSet ranks = broker_ranks(brokers);
  const IdSet others = inventory.ranks() - ranks;
  Hostlist hosts = brokers;
  hosts.append(inventory.hosts(others));
  return {{{ranks | others, IdSet{0}, IdSet{}}}, std::move(hosts)};
}

Outcome Module::apply(const Event& event) {
  std::visit(CheckChanges{states_}, event.body);
  Outcome outcome;
  static_cast<DrainChanges&>(outcome) = fold_states(event, states_);
  follow_schedules(outcome);
  std::visit([&](const auto& body) { apply_to(body, outcome); }, event.body);
  if (!is_of_ledger(event.body)) ++state_version_;
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
  RESOURCED_INVARIANT((touched & available_) == now);
  delta.up |= up;
  delta.down |= down;
}

void Module::apply_to(const RestartEvent& event, Outcome& outcome) {
  if (event.of_brokers) {
    // The ranks of an earlier inventory were those of other brokers.
    inventory_ = configured_ = {};
    with_lost_.reset();
    kept_properties_.clear();
    exclude_.clear();
    available_.clear();
    defined_ = false;
    ++inventory_version_;
    brokers_ = event.nodelist;
    addressable_ = targets_of_brokers(brokers_, inventory_);
  }
  settle(inventory_.ranks(), outcome.delta);
}

void Module::apply_to(const DefineEvent& event, Outcome& outcome) {
  Delta& delta = outcome.delta;
  delta.property_add = rset::new_properties(*event.inventory, inventory_);
  delta.property_remove = rset::new_properties(inventory_, *event.inventory);
  if (event.inventory->expiration() != inventory_.expiration()) {
    delta.expiration = event.inventory->expiration();
  }
  const IdSet touched = inventory_.ranks() | event.inventory->ranks();
  if (event.loaded) {
    move_states(*event.inventory);
    ledger_.move(configured_, event.configured ? *event.configured : *event.inventory);
    returning_.clear();
  }
  fold_inventory(event, inventory_);
  with_lost_.reset();
  if (has_brokers()) {
    addressable_ = targets_of_brokers(brokers_, inventory_);
    drop_states_of_others();
  }
  exclude_ = event.exclude;
  configured_ = event.configured ? *event.configured : inventory_;
  returning_ &= configured_.ranks() - inventory_.ranks();
  kept_properties_ = event.kept_properties;
  method_ = event.method;
  defined_ = true;
  ++inventory_version_;
  settle(touched, delta);
  check_available();
}

void Module::drop_states_of_others() {
  const IdSet& targets = addressable().ranks();
  (void)states_.drains.undrain(states_.drains.ranks() - targets);
  states_.online &= targets;
  states_.torpid &= targets;
}

IdSet Module::shrunk() const { return has_brokers() ? IdSet{} : configured_.ranks() - inventory_.ranks(); }

void Module::apply_to(const UnshrinkEvent& event, Outcome& /*outcome*/) { returning_ |= event.ranks; }

// A schedule changes no state of targets yet.
void Module::apply_to(const ScheduleEvent& /*event*/, Outcome& /*outcome*/) {}
void Module::apply_to(const CancelEvent& /*event*/, Outcome& /*outcome*/) {}

void Module::apply_to(const UpdateEvent& event, Outcome& outcome) {
  Delta& delta = outcome.delta;
  if (event.lost) {
    if (!with_lost_) with_lost_ = inventory_;
  } else if (with_lost_) {
    fold_inventory(event, *with_lost_);
  }
  fold_inventory(event, inventory_);
  for (const auto& [name, ranks] : event.property_add)
    kept_properties_[name] |= ranks - with_property(configured_, name);
  if (!event.lost)
    for (auto& [name, ranks] : kept_properties_) ranks -= event.shrink;
  for (const auto& [name, ranks] : event.property_remove) kept_properties_[name] -= ranks;
  std::erase_if(kept_properties_, [](const auto& property) { return property.second.empty(); });
  delta.property_add = event.property_add;
  delta.property_remove = event.property_remove;
  delta.expiration = event.expiration;
  // Includes excluded targets: a scheduler may have acquired them before they were excluded.
  delta.shrink = event.shrink;
  delta.down = event.shrink;
  if (!event.lost) exclude_ -= event.shrink;
  available_ -= event.shrink;
  returning_ -= event.shrink;
  // A lost target may be there again after the next definition, and its drain can be ended before that.
  if (const IdSet gone = event.shrink - broker_ranks(brokers_); has_brokers() && !event.lost && !gone.empty())
    addressable_.remove_ranks(gone);
  ++inventory_version_;
  if (!event.shrink.empty()) check_available();
}

void Module::check_available() const {
  RESOURCED_INVARIANT(inventory_.ranks().includes(available_));
  RESOURCED_INVARIANT(!available_.intersects(exclude_));
}

void Module::apply_to(const AllocEvent& event, Outcome& outcome) { outcome.ledger = ledger_.apply(event); }

void Module::apply_to(const FreeEvent& event, Outcome& outcome) { outcome.ledger = ledger_.apply(event); }

template <class OfRanks>
void Module::apply_to(const OfRanks& event, Outcome& outcome) {
  settle(event.ranks, outcome.delta);
}

}  // namespace resourced::module

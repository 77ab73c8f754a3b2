// Applying an event cannot fail: the event was checked when it was decided, or by require_next() when it was
// read.
#include "core/module/state.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/error.hpp"
#include "core/invariant.hpp"
#include "core/rset/operations.hpp"

namespace resourced::module {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

struct FoldStates {
  void operator()(const RestartEvent& event) const {
    changes.undrained = states.drains.undrain(states.drains.ranks() - event.ranks);
    cancel(states.scheduled.ranks() - event.ranks);
    states.online = event.online;
    states.torpid.clear();
  }
  void operator()(const DefineEvent& /*event*/) const {}
  void operator()(const ExpirationEvent& /*event*/) const {}
  void operator()(const PropertyEvent& /*event*/) const {}
  void operator()(const ShrinkEvent& event) const {
    states.online -= event.ranks;
    states.torpid -= event.ranks;
  }
  void operator()(const LossEvent& /*event*/) const {}
  void operator()(const UnshrinkEvent& /*event*/) const {}
  void operator()(const ForgetEvent& /*event*/) const {}
  void operator()(const DrainEvent& event) const {
    if (event.scheduled) begin(event.ranks);
    changes.drained = states.drains.drain(event.ranks, {event.terms(), timestamp, by}, event.overwrite);
  }
  void operator()(const UndrainEvent& event) const {
    changes.undrained = states.drains.undrain(event.ranks);
    if (!event.keeps_scheduled) cancel(event.ranks);
  }
  void operator()(const ScheduleEvent& event) const {
    changes.rescheduled = event.ranks;
    states.scheduled.add(event.ranks, {event.terms(), event.from, by});
  }
  void operator()(const CancelEvent& event) const { cancel(event.ranks, event.from); }
  void operator()(const EvictEvent& /*event*/) const {}
  void operator()(const OnlineEvent& event) const { states.online |= event.ranks; }
  void operator()(const OfflineEvent& event) const {
    states.online -= event.ranks;
    states.torpid -= event.ranks;
  }
  void operator()(const TorpidEvent& event) const { states.torpid |= event.ranks; }
  void operator()(const LivelyEvent& event) const { states.torpid -= event.ranks; }
  // Events of the ledger change no states of targets.
  void operator()(const AllocEvent& /*event*/) const {}
  void operator()(const AllocUpdateEvent& /*event*/) const {}
  void operator()(const FreeEvent& /*event*/) const {}

  void begin(const IdSet& ranks) const {
    changes.rescheduled = ranks;
    states.scheduled.begin(ranks);
  }
  void cancel(const IdSet& ranks, std::optional<WallTime> from = std::nullopt) const {
    changes.rescheduled = ranks & states.scheduled.ranks();
    states.scheduled.cancel(changes.rescheduled, from);
  }

  WallTime timestamp;
  const std::optional<Actor>& by;
  TargetStates& states;
  DrainChanges& changes;
};

struct FoldInventory {
  void operator()(const DefineEvent& event) const { inventory = *event.inventory; }
  void operator()(const ExpirationEvent& event) const { inventory.set_expiration(event.expiration); }
  void operator()(const PropertyEvent& event) const {
    for (const auto& [name, ranks] : event.added) inventory.add_property(name, ranks);
    for (const auto& [name, ranks] : event.removed) inventory.remove_property(name, ranks);
  }
  void operator()(const ShrinkEvent& event) const { inventory.remove_ranks(event.ranks); }
  void operator()(const LossEvent& event) const { inventory.remove_ranks(event.ranks); }
  template <class Other>
  void operator()(const Other& /*event*/) const {}

  ResourceSet& inventory;
};

// Set operations that look up a single rank; IdSet::includes() and intersects() go through the whole set.
bool all_in(const IdSet& ranks, const IdSet& set) { return (ranks - set).empty(); }
bool none_in(const IdSet& ranks, const IdSet& set) { return (ranks & set).empty(); }

// Whether an event can be the next one. An event of states names only targets whose state it changes, as
// holders and the journal are told of each; an event of the ledger allocates only free resources, and frees
// known ids.
struct CanFollow {
  bool operator()(const UndrainEvent& event) const {
    return all_in(event.ranks, state.targets.drains.ranks());
  }
  bool operator()(const OnlineEvent& event) const { return none_in(event.ranks, state.targets.online); }
  bool operator()(const OfflineEvent& event) const { return all_in(event.ranks, state.targets.online); }
  bool operator()(const TorpidEvent& event) const { return none_in(event.ranks, state.targets.torpid); }
  bool operator()(const LivelyEvent& event) const { return all_in(event.ranks, state.targets.torpid); }
  // A target that will return may be removed again before it is there.
  bool operator()(const ShrinkEvent& event) const {
    return all_in(event.ranks - state.returning, state.inventory.ranks());
  }
  bool operator()(const LossEvent& event) const { return all_in(event.ranks, state.inventory.ranks()); }
  bool operator()(const UnshrinkEvent& event) const { return all_in(event.ranks, state.configured.ranks()); }
  bool operator()(const ForgetEvent& event) const {
    const auto awaited = state.absent.awaited();
    bool all = true;
    event.nodelist.for_each([&](std::string_view host) { all = all && awaited.contains(host); });
    return all;
  }
  bool operator()(const AllocEvent& event) const {
    Ledger others;
    for (const SharedAllocation& allocation : event.allocations) {
      for (const Ledger* ledger : {&state.ledger, static_cast<const Ledger*>(&others)})
        if (ledger->find(allocation->name) != nullptr || ledger->first_held(allocation->resources))
          return false;
      if (event.allocations.size() > 1) others.apply(AllocEvent{{allocation}});
    }
    return true;
  }
  bool operator()(const AllocUpdateEvent& event) const {
    return state.ledger.find(event.name) != nullptr && !state.ledger.first_held(event.added);
  }
  bool operator()(const FreeEvent& event) const {
    const std::set<std::string_view> ids(event.ids.begin(), event.ids.end());
    return ids.size() == event.ids.size() && (!event.partial || ids.size() == 1) &&
           std::ranges::all_of(event.ids, [&](const std::string& id) {
             return find_freed(state.ledger.all(), event, id) != state.ledger.all().end();
           });
  }
  template <class Other>
  bool operator()(const Other& /*event*/) const {
    return true;
  }

  const State& state;
};

IdSet with_property(const ResourceSet& set, const std::string& name) {
  const auto found = set.properties().find(name);
  return found == set.properties().end() ? IdSet{} : found->second;
}

class Application {
 public:
  Application(State& state, WallTime timestamp, Outcome& outcome)
      : state_(state), timestamp_(timestamp), outcome_(outcome) {}

  void operator()(const RestartEvent& event);
  void operator()(const DefineEvent& event);
  void operator()(const ExpirationEvent& event);
  void operator()(const PropertyEvent& event);
  void operator()(const ShrinkEvent& event);
  void operator()(const LossEvent& event);
  void operator()(const UnshrinkEvent& event) { state_.returning |= event.ranks; }
  void operator()(const ForgetEvent& event);
  // Schedules and cancellations change no state of targets yet.
  void operator()(const ScheduleEvent& /*event*/) {}
  void operator()(const CancelEvent& /*event*/) {}
  void operator()(const EvictEvent& /*event*/) {}
  void operator()(const AllocEvent& event) { state_.ledger.apply(event); }
  void operator()(const AllocUpdateEvent& event) { state_.ledger.apply(event); }
  void operator()(const FreeEvent& event) { outcome_.released = state_.ledger.apply(event); }
  /// Applies events that only change states of targets.
  template <class OfRanks>
  void operator()(const OfRanks& event) {
    settle(event.ranks);
  }

 private:
  /// Sets the states of all targets aside, as ranks mean other targets from now on.
  void leave_ranks(bool keeps_properties);
  /// Moves the states of targets to another inventory. Returns those of targets that it lacks.
  [[nodiscard]] AbsentStates move_states(const DefineEvent& event, const ResourceSet& configured);
  /// Keeps an inventory that no configuration names, for a later restart.
  void remember(const DefineEvent& event);
  /// Lets the drains and scheduled drains of targets that leave for good wait for their return.
  void set_drains_aside(const IdSet& leaving);
  /// Leaves the states of an instance with their ranks. Those of ranks that are no targets with the next
  /// inventory are dropped, but their drains wait.
  void keep_ranks(const ResourceSet& next);
  /// Applies a change to the inventory, and to the one with lost targets if there is one.
  template <class Change>
  void change_inventory(const Change& event);
  /// Removes targets that have left the inventory from what schedulers may have.
  void leave_inventory(const IdSet& targets);
  /// Updates `available` for targets whose state has changed, and adds the differences to the outcome.
  void settle(const IdSet& touched);
  /// Asserts that each target that is up can be acquired. Goes through the whole inventory, so only events
  /// that replace it or remove targets call it.
  void check_available() const;

  State& state_;
  WallTime timestamp_;
  Outcome& outcome_;
};

void Application::settle(const IdSet& touched) {
  const TargetStates& targets = state_.targets;
  const IdSet now = (touched & state_.inventory.ranks() & targets.online) - state_.exclude -
                    targets.drains.ranks() - targets.torpid;
  const IdSet before = touched & state_.available;
  const IdSet up = now - before;
  const IdSet down = before - now;
  state_.available |= up;
  state_.available -= down;
  RESOURCED_INVARIANT((touched & state_.available) == now);
  outcome_.delta.up |= up;
  outcome_.delta.down |= down;
}

void Application::check_available() const {
  RESOURCED_INVARIANT(state_.inventory.ranks().includes(state_.available));
  RESOURCED_INVARIANT(!state_.available.intersects(state_.exclude));
}

// Properties of an instance are dropped, as the definition that follows knows which of them are kept.
void Application::leave_ranks(bool keeps_properties) {
  TargetStates& targets = state_.targets;
  AbsentStates waiting =
      states_of(state_, targets.drains.ranks() | targets.scheduled.ranks() | state_.inventory.ranks());
  if (!keeps_properties) waiting.properties.clear();
  state_.absent.shrunk = state_.shrunk_names();
  state_.absent.add(std::move(waiting));
  state_.ledger.move(state_.configured, {}, RankMap(state_.configured, {}));
  targets.drains = {};
  targets.scheduled = {};
  state_.inventory = state_.configured = {};
  state_.with_lost.reset();
  state_.kept_properties.clear();
  state_.exclude.clear();
  state_.returning.clear();
}

// Without brokers, the other states stay with the targets of the former inventory until the definition, which
// moves them. The ranks of brokers mean other targets at once.
void Application::operator()(const RestartEvent& event) {
  TargetStates& targets = state_.targets;
  if (event.of_brokers || state_.has_brokers()) leave_ranks(!event.of_brokers || !state_.has_brokers());
  state_.brokers = event.of_brokers ? event.nodelist : Hostlist();
  state_.of_brokers = event.of_brokers ? targets_of_brokers(state_.brokers, {}) : ResourceSet();
  targets.online = event.online;
  targets.torpid.clear();
  state_.available.clear();
  state_.defined = false;
  if (event.of_brokers) take_back(state_, {});
  for (const DrainGroup& drain : event.drains)
    (void)targets.drains.drain(drain.ranks - targets.drains.ranks(), drain, Overwrite::nothing);
}

AbsentStates Application::move_states(const DefineEvent& event, const ResourceSet& configured) {
  const ResourceSet& from = event.loaded ? state_.inventory : state_.configured;
  const ResourceSet& to = event.loaded ? *event.inventory : configured;
  const RankMap map = event.loaded ? RankMap(from, to) : RankMap::by_name(from, to);
  AbsentStates lacking;
  if (!map.keeps(from.ranks())) {
    IdSet gone;
    from.ranks().for_each([&](IdSet::Id rank) {
      if (!map.rank_of(rank)) gone.insert(rank);
    });
    lacking = states_of(state_, gone, to);
    if (!event.loaded) {
      const IdSet left = gone & (state_.shrunk() - state_.returning);
      state_.names(left).for_each([&](std::string_view host, std::uint32_t ordinal) {
        lacking.shrunk.push_back({std::string(host), ordinal});
      });
    }
    TargetStates moved = renumbered(state_.targets, map);
    if (!event.loaded) {
      // The restart has told these by the ranks of the inventory that follows it.
      moved.online = std::move(state_.targets.online);
      moved.torpid = std::move(state_.targets.torpid);
    }
    state_.targets = std::move(moved);
  }
  if (!state_.ledger.empty())
    state_.ledger.move(state_.configured, configured,
                       event.loaded ? RankMap(state_.configured, configured) : map);
  if (event.loaded) state_.absent.shrunk.clear();
  state_.returning.clear();
  state_.available.clear();
  return lacking;
}

void Application::keep_ranks(const ResourceSet& next) {
  ResourceSet now = targets_of_brokers(state_.brokers, next);
  TargetStates& targets = state_.targets;
  // Set drains aside before others come back, as the next inventory may have such a target at another rank.
  const IdSet leaving = targets.drains.ranks() - now.ranks();
  set_aside(state_, targets.drains, leaving, state_.absent.drains);
  (void)targets.drains.undrain(leaving);
  targets.online &= now.ranks();
  targets.torpid &= now.ranks();
  state_.of_brokers = std::move(now);
}

void Application::operator()(const DefineEvent& event) {
  Delta& delta = outcome_.delta;
  const ResourceSet& next = *event.inventory;
  const ResourceSet& configured = event.configured ? *event.configured : next;
  delta.property_add = rset::new_properties(next, state_.inventory);
  delta.property_remove = rset::new_properties(state_.inventory, next);
  if (next.expiration() != state_.inventory.expiration()) delta.expiration = next.expiration();
  const IdSet touched = state_.inventory.ranks() | next.ranks();
  AbsentStates lacking;
  if (state_.has_brokers()) {
    keep_ranks(next);
  } else if (event.loaded || !state_.defined) {
    lacking = move_states(event, configured);
  }
  remember(event);
  FoldInventory{state_.inventory}(event);
  state_.with_lost.reset();
  state_.exclude = event.exclude;
  state_.configured = configured;
  state_.returning &= state_.configured.ranks() - state_.inventory.ranks();
  state_.kept_properties = event.kept_properties;
  state_.method = event.method;
  const bool is_start = !std::exchange(state_.defined, true);
  take_back(state_, is_start ? IdSet{} : state_.exclude);
  state_.absent.add(std::move(lacking));
  settle(touched);
  check_available();
}

void Application::set_drains_aside(const IdSet& leaving) {
  TargetStates& targets = state_.targets;
  set_aside(state_, targets.drains, leaving, state_.absent.drains);
  for (const DrainTable& table : targets.scheduled.tables())
    set_aside(state_, table, leaving, state_.absent.scheduled);
  outcome_.undrained = targets.drains.undrain(leaving);
  outcome_.rescheduled = leaving & targets.scheduled.ranks();
  targets.scheduled.cancel(leaving);
}

void Application::remember(const DefineEvent& event) {
  KeptInventory& kept = state_.kept_inventory;
  const auto& configured = event.configured ? event.configured : event.inventory;
  if (event.loaded || state_.has_brokers()) {
    kept = {event.method, configured, event.loaded ? event.loaded->replaced : std::nullopt};
    state_.expiration = {event.inventory->expiration(), configured->expiration(), timestamp_};
  } else if (event.method == DefineMethod::configuration || event.method == DefineMethod::job_info) {
    if (kept.method == DefineMethod::reload) kept = {};
  } else if (event.method == DefineMethod::dynamic_discovery) {
    kept = {event.method, configured, std::nullopt};
  }
}

void Application::operator()(const ForgetEvent& event) {
  const text::HostIndex forgotten(event.nodelist);
  const auto is_forgotten = [&](const auto& row) { return forgotten.find(row.target.host).has_value(); };
  std::erase_if(state_.absent.drains, is_forgotten);
  std::erase_if(state_.absent.scheduled, is_forgotten);
  std::erase_if(state_.absent.properties, is_forgotten);
}

void Application::operator()(const ExpirationEvent& event) {
  change_inventory(event);
  state_.expiration = {event.expiration, state_.configured.expiration(), timestamp_};
  outcome_.delta.expiration = event.expiration;
}

void Application::operator()(const PropertyEvent& event) {
  change_inventory(event);
  ResourceSet::Properties& kept = state_.kept_properties;
  for (const auto& [name, ranks] : event.added) kept[name] |= ranks - with_property(state_.configured, name);
  for (const auto& [name, ranks] : event.removed) kept[name] -= ranks;
  std::erase_if(kept, [](const auto& property) { return property.second.empty(); });
  outcome_.delta.property_add = event.added;
  outcome_.delta.property_remove = event.removed;
}

void Application::operator()(const ShrinkEvent& event) {
  set_drains_aside(event.ranks);
  change_inventory(event);
  ResourceSet::Properties& kept = state_.kept_properties;
  for (auto& [name, ranks] : kept) ranks -= event.ranks;
  std::erase_if(kept, [](const auto& property) { return property.second.empty(); });
  state_.exclude -= event.ranks;
  state_.returning -= event.ranks;
  leave_inventory(event.ranks);
}

// A lost target may be there again after the next definition, and its drain can be ended before that.
void Application::operator()(const LossEvent& event) {
  if (!state_.with_lost) state_.with_lost = state_.inventory;
  FoldInventory{state_.inventory}(event);
  leave_inventory(event.ranks);
}

template <class Change>
void Application::change_inventory(const Change& event) {
  if (state_.with_lost) FoldInventory{*state_.with_lost}(event);
  FoldInventory{state_.inventory}(event);
}

// Schedulers are told of excluded targets too: one may have acquired them before they were excluded.
void Application::leave_inventory(const IdSet& targets) {
  outcome_.delta.shrink = targets;
  outcome_.delta.down = targets;
  state_.available -= targets;
  check_available();
}

}  // namespace

PropertyChanges State::property_changes() const {
  const ResourceSet& now = recorded_inventory();
  return {rset::new_properties(now, configured), rset::new_properties(configured, now)};
}

std::vector<TargetName> State::shrunk_names() const {
  std::vector<TargetName> gone = absent.shrunk;
  names(shrunk() - returning).for_each([&](std::string_view host, std::uint32_t ordinal) {
    gone.push_back({std::string(host), ordinal});
  });
  return gone;
}

AbsentStates State::by_name() const {
  AbsentStates all = states_of(*this, targets.drains.ranks() | targets.scheduled.ranks() | inventory.ranks());
  all.add(absent);
  all.shrunk = shrunk_names();
  return all;
}

PropertyChanges State::run_time_properties() const {
  PropertyChanges changes = property_changes();
  for (const auto& [name, ranks] : kept_properties)
    changes.added[name] |= ranks & with_property(inventory, name);
  for (auto* properties : {&changes.added, &changes.removed}) {
    for (auto& [name, ranks] : *properties) ranks &= inventory.ranks();
    std::erase_if(*properties, [](const auto& property) { return property.second.empty(); });
  }
  return changes;
}

void fold_inventory(const EventBody& event, ResourceSet& inventory) {
  std::visit(FoldInventory{inventory}, event);
}

DrainChanges fold_states(const Event& event, TargetStates& states) {
  DrainChanges changes;
  std::visit(FoldStates{event.timestamp, event.by, states, changes}, event.body);
  return changes;
}

ResourceSet targets_of_brokers(const Hostlist& brokers, const ResourceSet& inventory) {
  const IdSet ranks = brokers.empty() ? IdSet{} : IdSet::range(0, static_cast<IdSet::Id>(brokers.size() - 1));
  const IdSet others = inventory.ranks() - ranks;
  Hostlist hosts = brokers;
  hosts.append(inventory.hosts(others));
  return {{{ranks | others, IdSet{0}, IdSet{}}}, std::move(hosts)};
}

TargetStates renumbered(const TargetStates& states, const RankMap& map) {
  TargetStates moved{{}, map(states.online), map(states.torpid)};
  for (const auto& [key, ranks] : states.drains.groups())
    (void)moved.drains.drain(map(ranks), key, Overwrite::nothing);
  for (const auto& [key, ranks] : states.scheduled.groups()) moved.scheduled.add(map(ranks), key);
  return moved;
}

void require_next(const State& state, const EventBody& event) {
  if (!std::visit(CanFollow{state}, event))
    throw Error(EINVAL, "it does not follow from the events before it");
}

Outcome apply(State& state, const Event& event) {
  // The ledger checks its own events when it applies them.
  RESOURCED_INVARIANT(is_of_ledger(event.body) || std::visit(CanFollow{state}, event.body));
  Outcome outcome;
  // A restart is applied as a whole below: its ranks are those of the inventory that follows it.
  if (!std::holds_alternative<RestartEvent>(event.body))
    static_cast<DrainChanges&>(outcome) = fold_states(event, state.targets);
  Application application(state, event.timestamp, outcome);
  std::visit([&](const auto& body) { application(body); }, event.body);
  return outcome;
}

}  // namespace resourced::module

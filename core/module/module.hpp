// The resource module: the inventory, the state of each execution target, and the decisions on commands
// (RFC 28, RFC 44). `decide` returns events and changes nothing, `apply` folds one event into the state; a
// start goes through the same `apply`. Holders of the resources are kept in acquisition.hpp.
//
// State belongs to an execution target of a host. In a Flux instance a target is the rank of a broker, may be
// drained or online without being in the inventory, and keeps its state whatever inventory is defined. A rank
// that has no broker has its state only as long as it is in the inventory.
//
// There is no other code for the application of events than fold_inventory(), fold_states() and, for
// allocations, Ledger::apply(): the module, the check of a command before it is applied, an import and the
// mirror of an enclosing instance all use them. An event in ranks of another instance is translated first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/module/allocations.hpp"
#include "core/module/command.hpp"
#include "core/module/delta.hpp"
#include "core/module/drain_table.hpp"
#include "core/module/event.hpp"
#include "core/module/rank_map.hpp"
#include "core/module/target_names.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::module {

/// The states of targets, as events tell them.
struct TargetStates {
  DrainTable drains;
  text::IdSet online;
  text::IdSet torpid;
  /// Drains that begin later; the timestamp is their beginning.
  DrainTable scheduled = {};
};

/// The changes of an event in the table of drains: targets whose entry has changed, and targets that are no
/// longer drained; and the same in the table of scheduled drains.
struct DrainChanges {
  std::vector<DrainGroup> drained;
  text::IdSet undrained;
  std::vector<DrainGroup> scheduled;
  text::IdSet unscheduled;
};

/// Applies an event to an inventory. Only definitions and updates change it.
void fold_inventory(const EventBody& event, rset::ResourceSet& inventory);
void fold_inventory(const DefineEvent& event, rset::ResourceSet& inventory);
void fold_inventory(const UpdateEvent& event, rset::ResourceSet& inventory);

/// Applies an event to states of targets. A restart drops the drains of targets that it does not name; a
/// target that leaves for good has no state any more, one whose broker is lost keeps it. A definition changes
/// nothing: where it renumbers or removes targets, their owner moves or drops the states.
DrainChanges fold_states(const Event& event, TargetStates& states);

/// The states of targets that are in another inventory as well, by the ranks that they have there.
[[nodiscard]] TargetStates renumbered(const TargetStates& states, const RankMap& map);

/// Changes that one event caused: for schedulers, and for the tables of the present in the store.
struct Outcome : DrainChanges {
  Delta delta;
  LedgerChanges ledger;
};

/// A property of targets, compared with the configuration. A property that was added at run time stays
/// `added` when the configuration has it as well.
struct PropertyState {
  enum class Difference { same, added, removed };
  std::string name;
  text::IdSet ranks;
  Difference difference = Difference::same;
};

/// Properties that are there and not in the configuration, and the reverse.
struct PropertyChanges {
  rset::ResourceSet::Properties added;
  rset::ResourceSet::Properties removed;
};

/// The targets of an instance with these brokers and inventory (Module::addressable()).
[[nodiscard]] rset::ResourceSet targets_of_brokers(const text::Hostlist& brokers,
                                                   const rset::ResourceSet& inventory);

/// Drains that end now, and scheduled ones that begin.
struct DueDrains {
  std::vector<Event> events;
  /// Targets whose scheduled drain waits from now on: an operator has drained them.
  text::IdSet waiting;
};

class Module {
 public:
  /// How many groups of targets begin or end at once.
  static constexpr std::size_t most_at_once = 16;

  /// An event of a start, and whether the store has it already.
  struct StartEvent {
    Event event;
    bool recorded = false;
  };

  /// The events that a command causes, in order; none if it changes nothing.
  /// Throws Error with the errno and text that operators know; the state is unchanged either way.
  [[nodiscard]] std::vector<Event> decide(const Command& command, WallTime now) const;

  /// The events of a start, for a module that has no inventory yet. A recorded drain goes to the present rank
  /// of its host, or is dropped with its host; an excluded target is undrained.
  [[nodiscard]] static std::vector<StartEvent> start(const StartCommand& command, WallTime now);

  /// The events of a definition, in order. Requires brokers. Throws Error EINVAL for the name of a property
  /// that RFC 20 does not allow.
  [[nodiscard]] std::vector<Event> define(const DefineCommand& command, WallTime now) const;

  /// The event of targets that leave the inventory because they have lost their brokers, none where
  /// the inventory keeps such targets.
  [[nodiscard]] std::vector<Event> lose(const text::IdSet& targets, WallTime now) const;

  /// The events of drains that end by now and, after them, of scheduled drains that begin by now. A scheduled
  /// drain waits where an operator has drained the target. There may be `most` events for each of both and
  /// for the scheduled drains that begin as others end; the rest is due next.
  [[nodiscard]] DueDrains due(WallTime now, std::size_t most = most_at_once) const;
  /// Scheduled drains of these targets are not due any more, until an operator's drain ends.
  void wait(const text::IdSet& targets);
  /// When due() has something next, as long as no state changes: now, if that time has come.
  [[nodiscard]] std::optional<WallTime> next_due() const;

  Outcome apply(const Event& event);

  /// Whether targets are ranks of brokers (RestartEvent::of_brokers).
  [[nodiscard]] bool has_brokers() const noexcept { return !brokers_.empty(); }
  /// The host of each broker, by rank; empty where there are no brokers.
  [[nodiscard]] const text::Hostlist& brokers() const noexcept { return brokers_; }
  /// The targets that a command may name, with their hosts: the inventory. With brokers, all of these and the
  /// ranks of the inventory above theirs; each has one core, and only ranks and hosts mean anything.
  [[nodiscard]] const rset::ResourceSet& addressable() const noexcept {
    return has_brokers() ? addressable_ : inventory_;
  }

  /// Whether the inventory is known.
  [[nodiscard]] bool defined() const noexcept { return defined_; }
  [[nodiscard]] DefineMethod method() const noexcept { return method_; }
  /// All targets, excluded ones too, without those that left for good.
  [[nodiscard]] const rset::ResourceSet& inventory() const noexcept { return inventory_; }
  /// The inventory that a restart should find: with the targets whose brokers are lost, and with the changes
  /// of run time that inventory() has.
  [[nodiscard]] const rset::ResourceSet& recorded_inventory() const noexcept {
    return with_lost_ ? *with_lost_ : inventory_;
  }
  /// Targets of the inventory; with brokers also others.
  [[nodiscard]] const text::IdSet& excluded() const noexcept { return exclude_; }
  /// The targets that a scheduler may be given, up or not.
  [[nodiscard]] text::IdSet acquirable() const { return inventory_.ranks() - exclude_; }
  /// The targets that are up: acquirable, online, neither drained nor torpid. Kept up to date, never
  /// recomputed.
  [[nodiscard]] const text::IdSet& available() const noexcept { return available_; }
  /// The targets that are drained, online and torpid: of the inventory; with brokers also others.
  [[nodiscard]] const TargetStates& states() const noexcept { return states_; }
  [[nodiscard]] const DrainTable& drains() const noexcept { return states_.drains; }
  /// The targets among these that are drained for silence, or for their health by the agent of their host.
  [[nodiscard]] text::IdSet drained_by_daemon(const text::IdSet& targets) const;
  [[nodiscard]] const DrainTable& scheduled_drains() const noexcept { return states_.scheduled; }
  [[nodiscard]] const text::IdSet& online() const noexcept { return states_.online; }
  [[nodiscard]] const text::IdSet& torpid() const noexcept { return states_.torpid; }
  [[nodiscard]] const Ledger& ledger() const noexcept { return ledger_; }
  /// The inventory before changes of run time. It has the targets that left for good, since they count in the
  /// names of the others.
  [[nodiscard]] const rset::ResourceSet& configured() const noexcept { return configured_; }
  /// The targets of configured() that left for good and are not back yet. With brokers such targets are only
  /// lost, and not counted.
  [[nodiscard]] text::IdSet shrunk() const;
  /// The shrunk targets that will return (UnshrinkEvent).
  [[nodiscard]] const text::IdSet& returning() const noexcept { return returning_; }
  /// How the properties of the recorded inventory differ from the configured ones.
  [[nodiscard]] PropertyChanges property_changes() const;
  /// The names of these ranks in the store.
  [[nodiscard]] TargetNames names(const text::IdSet& ranks) const {
    return names_of(ranks, has_brokers() ? addressable_ : configured_);
  }
  /// A property of these targets compared with the configuration, for the store.
  [[nodiscard]] std::vector<PropertyState> property_states(const std::string& name,
                                                           const text::IdSet& ranks) const;

  /// Numbers that grow with each change of the inventory (R or exclusion), and of any state but the ledger,
  /// which has a number of its own: a value derived from the state is valid as long as the number is the
  /// same.
  [[nodiscard]] std::uint64_t inventory_version() const noexcept { return inventory_version_; }
  [[nodiscard]] std::uint64_t state_version() const noexcept { return state_version_; }

 private:
  // In drain_commands.cpp.
  [[nodiscard]] std::vector<Event> decide_on(const DrainCommand& command, WallTime now) const;
  /// The drains by which an operator takes over those of these targets that are drained for ill health or
  /// silence: without them the daemon could end these drains by itself. Such a drain gets the reason of the
  /// command, or keeps its own if there is none. There may be more such drains than these events.
  [[nodiscard]] std::vector<Event> take_over(const text::IdSet& targets, const DrainEvent& drain,
                                             WallTime now, std::size_t most) const;
  /// Those of these targets that an operator has drained.
  [[nodiscard]] text::IdSet drained_by_operators(const text::IdSet& targets) const;
  [[nodiscard]] std::vector<Event> decide_on(const UndrainCommand& command, WallTime now) const;
  void check_times(const DrainCommand& command, WallTime now) const;
  void check_reason(const text::IdSet& targets, const std::optional<std::string>& reason) const;
  /// The scheduled drains whose time has come and that begin as the drains of these targets end.
  struct Replacements {
    std::vector<Event> events;
    text::IdSet begun;
    /// Targets that have to wait: there may be more such drains than these events.
    text::IdSet later;
  };
  [[nodiscard]] Replacements begin_in_place(const text::IdSet& ending, WallTime now, std::size_t most) const;
  /// The parts of due(): ends, with the drains that begin in their place, whose targets it returns; scheduled
  /// drains that are over before they could begin; and those that begin.
  [[nodiscard]] text::IdSet end_due(WallTime now, std::size_t most, std::vector<Event>& events) const;
  void cancel_due(WallTime now, std::size_t most, std::vector<Event>& events) const;
  void begin_due(WallTime now, std::size_t most, const text::IdSet& begun, DueDrains& due) const;
  /// Updates `pending_` and `waiting_` by the changes of an event.
  void follow_schedules(const DrainChanges& changes);
  /// The scheduled drains of these targets, which wait no longer.
  void look_again(const text::IdSet& targets);
  [[nodiscard]] std::vector<Event> schedule(const DrainCommand& command, const text::IdSet& targets,
                                            WallTime now) const;
  // In start.cpp and module.cpp.
  [[nodiscard]] std::vector<Event> decide_on(const LoadCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const MonitorCommand& command, WallTime now) const;
  // In inventory_commands.cpp.
  [[nodiscard]] std::vector<Event> decide_on(const PropertyCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const ExpirationCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const ShrinkCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const UnshrinkCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const ReloadCommand& command, WallTime now) const;
  // In ledger_commands.cpp.
  [[nodiscard]] std::vector<Event> decide_on(const AllocCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const FreeCommand& command, WallTime now) const;

  /// Throws Error EPERM if a scheduler may not free these targets of an allocation: the scheduler of its
  /// partition may, and one that holds all of them.
  void check_frees(const std::vector<Holding>& holdings, const Allocation& allocation,
                   const text::IdSet& ranks) const;

  /// The inventory with the targets that will return.
  [[nodiscard]] rset::ResourceSet with_returned() const;
  /// The targets of a drain or undrain. With brokers, ranks are those of addressable(), and hosts those of
  /// the recorded inventory once it is known, as in Flux.
  [[nodiscard]] text::IdSet drain_targets(std::string_view text) const;
  /// Whether a target leaves the inventory when its broker is lost.
  [[nodiscard]] bool loses_targets() const noexcept {
    return has_brokers() && defined_ && method_ != DefineMethod::configuration;
  }

  void apply_to(const RestartEvent& event, Outcome& outcome);
  void apply_to(const DefineEvent& event, Outcome& outcome);
  void apply_to(const UpdateEvent& event, Outcome& outcome);
  void apply_to(const UnshrinkEvent& event, Outcome& outcome);
  void apply_to(const ScheduleEvent& event, Outcome& outcome);
  void apply_to(const CancelEvent& event, Outcome& outcome);
  void apply_to(const AllocEvent& event, Outcome& outcome);
  void apply_to(const FreeEvent& event, Outcome& outcome);
  /// Events of states alone.
  template <class OfRanks>
  void apply_to(const OfRanks& event, Outcome& outcome);

  /// Moves states with their targets to another inventory.
  void move_states(const rset::ResourceSet& next);
  /// Drops the states of ranks that are not addressable().
  void drop_states_of_others();
  /// Updates `available_` for targets whose state has changed, and adds the differences to `delta`.
  void settle(const text::IdSet& touched, Delta& delta);
  /// Asserts that each target that is up can be acquired. Goes through the whole inventory, so only events
  /// that replace it or remove targets call it.
  void check_available() const;

  bool defined_ = false;
  DefineMethod method_ = DefineMethod::configuration;
  rset::ResourceSet inventory_;
  /// recorded_inventory(), where it is another one.
  std::optional<rset::ResourceSet> with_lost_;
  text::Hostlist brokers_;
  /// Returned by addressable(); empty without brokers.
  rset::ResourceSet addressable_;
  rset::ResourceSet configured_;
  text::IdSet returning_;
  // As DefineEvent has them.
  rset::ResourceSet::Properties kept_properties_;
  text::IdSet exclude_;
  TargetStates states_;
  /// Scheduled drains without those that wait, so that a wait costs nothing while it lasts.
  DrainTable pending_;
  text::IdSet waiting_;
  text::IdSet available_;
  /// By ranks of configured(), which has the targets that left for good.
  Ledger ledger_;
  std::uint64_t inventory_version_ = 0;
  std::uint64_t state_version_ = 0;
};

}  // namespace resourced::module

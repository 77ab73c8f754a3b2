// The State: all that the events of a log say about the targets of a cluster, as one value, and apply(), the
// only function that changes it. Module decides on a State. A start, a standby and reads of the past apply
// the events of the log, from an empty State or from one that the log has as a snapshot.
//
// A State has the states of execution targets of hosts. In a Flux instance a target is the rank of a broker,
// may be drained or online without being in the inventory, and keeps its state whatever inventory is defined.
// A rank that has no broker has its state only as long as it is in the inventory.
//
// An import and the mirror of an enclosing instance use fold_inventory() and fold_states() alone, as their
// ranks are those of another log.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/module/absent_states.hpp"
#include "core/module/allocations.hpp"
#include "core/module/delta.hpp"
#include "core/module/drain_table.hpp"
#include "core/module/event.hpp"
#include "core/module/rank_map.hpp"
#include "core/module/schedules.hpp"
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
  /// Drains that begin later.
  Schedules scheduled = {};
};

/// Changes of an event in the drains: targets whose entry has changed, and targets that are no longer
/// drained. And targets whose scheduled drains may have changed.
struct DrainChanges {
  std::vector<DrainGroup> drained;
  text::IdSet undrained;
  text::IdSet rescheduled;
};

/// An expiration that was set at run time. It applies as long as the configured expiration is `configured`.
struct RunTimeExpiration {
  WallTime value{};
  WallTime configured{};
  /// The timestamp of the event that set the expiration.
  WallTime timestamp{};
};

/// An inventory that no configuration names, as it was discovered or loaded (resource.reload with a path),
/// without changes at run time. For targets of brokers, any inventory.
struct KeptInventory {
  DefineMethod method = DefineMethod::dynamic_discovery;
  /// The inventory; null if none is kept.
  std::shared_ptr<const rset::ResourceSet> resources;
  /// For a loaded inventory, the R of the configuration (ResourceSet::encode()) that it replaced: as long as
  /// the configuration still has this R, the loaded one is in force. Unset if no R was configured.
  std::optional<std::string> replaced;
};

/// Properties that targets have and the configuration does not, and the reverse.
struct PropertyChanges {
  rset::ResourceSet::Properties added;
  rset::ResourceSet::Properties removed;
};

/// Returns the targets of an instance with these brokers and this inventory (Module::addressable()).
[[nodiscard]] rset::ResourceSet targets_of_brokers(const text::Hostlist& brokers,
                                                   const rset::ResourceSet& inventory);

/// Changes that one event caused, for schedulers, consumers and counts.
struct Outcome : DrainChanges {
  Delta delta;
  /// The resources that no allocation holds any longer.
  std::vector<std::shared_ptr<const rset::ResourceSet>> released;
};

struct State {
  /// Whether the inventory is known, and how it became known.
  bool defined = false;
  DefineMethod method = DefineMethod::configuration;
  /// All targets, including excluded ones, without those that left for good.
  rset::ResourceSet inventory;
  /// The inventory that a restart should find while brokers are lost: it has their targets, and the changes
  /// at run time that `inventory` has. Unset if no broker is lost.
  std::optional<rset::ResourceSet> with_lost;
  /// The inventory before changes at run time. It has the targets that left for good, since they count in the
  /// names of the others.
  rset::ResourceSet configured;
  KeptInventory kept_inventory;
  std::optional<RunTimeExpiration> expiration;
  /// Properties that were added at run time (DefineEvent::kept_properties).
  rset::ResourceSet::Properties kept_properties;
  /// Excluded targets of the inventory; with brokers also others.
  text::IdSet exclude;
  /// Targets that left for good and will return (UnshrinkEvent).
  text::IdSet returning;
  /// The host of each broker, by rank; empty if targets are not ranks of brokers.
  text::Hostlist brokers;
  /// With brokers: the targets of the brokers and of the inventory's ranks above theirs, with one core each.
  /// Empty otherwise.
  rset::ResourceSet of_brokers;
  TargetStates targets;
  /// The targets that are up: in the inventory, online, neither excluded, drained nor torpid. None from a
  /// restart to the definition that follows it.
  text::IdSet available;
  /// The allocations, by ranks of `configured`.
  Ledger ledger;
  AbsentStates absent;

  /// Returns why these targets are not available.
  [[nodiscard]] DownCauses causes_of(const text::IdSet& down) const {
    return {down & targets.drains.ranks(), down - targets.online, down & targets.torpid, down & exclude};
  }
  /// Whether targets are ranks of brokers (RestartEvent::of_brokers).
  [[nodiscard]] bool has_brokers() const noexcept { return !brokers.empty(); }
  /// Whether it is known which targets there are: those of an instance are known before its inventory.
  [[nodiscard]] bool has_targets() const noexcept { return defined || has_brokers(); }
  /// Whether the ledger has the allocations. Those of an instance are reported by its job manager.
  [[nodiscard]] bool keeps_allocations() const noexcept { return !has_brokers(); }
  /// Whether the log has the past of the targets. An instance has it in a log of its own.
  [[nodiscard]] bool keeps_past() const noexcept { return !has_brokers(); }
  /// The targets that a command may name, with their hosts.
  [[nodiscard]] const rset::ResourceSet& addressable() const noexcept {
    return has_brokers() ? of_brokers : inventory;
  }
  /// The targets that have names, with their hosts: those that left for good, too.
  [[nodiscard]] const rset::ResourceSet& named() const noexcept {
    return has_brokers() ? of_brokers : configured;
  }
  [[nodiscard]] const rset::ResourceSet& recorded_inventory() const noexcept {
    return with_lost ? *with_lost : inventory;
  }
  /// The targets of `configured` that left for good and are not back yet. Lost ones are not among them.
  [[nodiscard]] text::IdSet shrunk() const { return configured.ranks() - recorded_inventory().ranks(); }
  /// Compares the properties of the recorded inventory with the configured ones.
  [[nodiscard]] PropertyChanges property_changes() const;
  /// Properties of targets in the inventory that were added at run time, even if they are configured by now,
  /// and configured ones that were removed.
  [[nodiscard]] PropertyChanges run_time_properties() const;
  /// Returns the states of all targets by name, of absent ones too.
  [[nodiscard]] AbsentStates by_name() const;
  /// Returns the names of the targets that left for good, of absent ones too, without those that will return.
  [[nodiscard]] std::vector<TargetName> shrunk_names() const;
  /// The targets that may be given to schedulers, up or not.
  [[nodiscard]] text::IdSet acquirable() const { return inventory.ranks() - exclude; }
  /// The targets of the inventory that have an allocation.
  [[nodiscard]] text::IdSet allocated() const { return ledger.ranks() & inventory.ranks(); }
  /// Returns the names of the targets with these ranks.
  [[nodiscard]] TargetNames names(const text::IdSet& ranks) const { return names_of(ranks, named()); }
};

/// Throws Error EINVAL if this cannot be the next event. To be called for an event that was read, before
/// apply().
void require_next(const State& state, const EventBody& event);

/// Applies the next event of the log. An event is complete: nothing else changes a State.
Outcome apply(State& state, const Event& event);

/// Applies an event to an inventory. Only a definition changes it, and what updates_inventory() says.
void fold_inventory(const EventBody& event, rset::ResourceSet& inventory);

/// Applies an event to states of targets. A restart drops the drains of targets that it does not name. A
/// target that leaves for good keeps only its drains, which wait for its return; one whose broker is lost
/// keeps all. A definition changes nothing: if it renumbers or removes targets, the owner of the states moves
/// or drops them.
DrainChanges fold_states(const Event& event, TargetStates& states);

/// Returns the states of those targets that are in another inventory as well, by the ranks that they have
/// there.
[[nodiscard]] TargetStates renumbered(const TargetStates& states, const RankMap& map);

}  // namespace resourced::module

// Commands to the resource module, from operators, the configuration and monitoring. Targets are text (an
// idset or a hostlist) because only the module knows which ranks and hosts there are.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/module/allocation.hpp"
#include "core/module/drain_table.hpp"
#include "core/module/event.hpp"
#include "core/module/partition.hpp"
#include "core/module/state.hpp"
#include "core/time.hpp"

namespace resourced::module {

/// How a drain or undrain treats targets that are already drained, or already undrained.
enum class DrainMode { none, update, overwrite, force_overwrite };

struct DrainCommand : DrainTerms {
  std::string targets;
  DrainMode mode = DrainMode::none;
  /// When the drain begins; a later time schedules it, in place of one that begins at the same time. For a
  /// target that an operator has drained by then, it begins when that drain ends by itself or by an undrain
  /// that keeps scheduled drains.
  std::optional<WallTime> from = std::nullopt;
  /// Refuses the command unless all targets are drained for this reason, or without one if it is empty.
  std::optional<std::string> if_reason = std::nullopt;
  /// Refuses the command if one of the targets is drained, even without a reason.
  bool if_not_drained = false;
};

/// Ends drains, and cancels the scheduled drains of the targets.
struct UndrainCommand {
  std::string targets;
  std::optional<std::string> reason;
  DrainMode mode = DrainMode::none;
  /// Keeps scheduled drains: those whose time has come begin in place of the drains that end. Unhealthy
  /// targets stay drained for their health.
  bool keeps_scheduled = false;
  /// Refuses the command unless all targets are drained for this reason, or without one if it is empty.
  std::optional<std::string> if_reason = std::nullopt;
};

/// Cancels scheduled drains. Drains that have begun stay.
struct CancelCommand {
  std::string targets;
  /// The begin of those to cancel, see begins_at(); unset for all.
  std::optional<WallTime> from = std::nullopt;
};

/// Whether a drain that begins at `begin` is meant by the time `from` of a CancelCommand. A begin is shown in
/// whole seconds, the nearest, and may be given without its fraction.
[[nodiscard]] inline bool begins_at(WallTime begin, WallTime from) {
  constexpr Seconds before{0.5};
  constexpr Seconds behind{1};
  return begin >= from - before && begin < from + behind;
}

struct PropertyCommand {
  enum class Op { add, remove };
  Op op = Op::add;
  std::string name;
  std::string targets;
};

struct ExpirationCommand {
  /// The new expiration; the epoch removes it.
  WallTime expiration{};
  /// Set if an enclosing instance sets the expiration: its resources may have expired before its message
  /// came. Otherwise a time that has passed is refused.
  bool may_have_passed = false;
};

struct ShrinkCommand {
  std::string targets;
};

/// Lets targets return that left for good (UnshrinkEvent).
struct UnshrinkCommand {
  std::string targets;
};

/// Drops what waits for hosts that the inventory lacks (ForgetEvent). Refused for a host that an allocation
/// still has.
struct ForgetCommand {
  std::string hosts;
};

/// The targets that a scheduler holds in one partition. An empty name stands for the rest of the inventory.
struct Holding {
  std::string partition;
  text::IdSet targets;
};

/// The rules of the ledger that a site sets.
struct LedgerRules {
  /// Maximum size of all allocations (Ledger::bytes()). Where there are partitions, one of them may have half
  /// of it.
  std::size_t max_bytes = std::size_t{64} << 20;
  /// Whether allocations are freed when they expire.
  bool free_expired = false;
};

/// Frees allocations, makes others, and changes one: all of it or none.
struct LedgerCommand {
  std::vector<FreeRequest> frees = {};
  std::vector<AllocationRequest> allocations = {};
  /// Set if the sender may have sent this command before. An allocation with an equal R, expiration and note
  /// counts as made then, and all that the command frees of its name counts as freed. An id or rank that is
  /// gone counts as freed, and resources that the allocation has already count as added.
  bool repeat = false;
  std::optional<UpdateRequest> update = std::nullopt;
  /// The holdings of the scheduler that sends it; unset for an operator, who may free and change any
  /// allocation, and allocates nothing.
  std::optional<std::vector<Holding>> holdings = std::nullopt;
  /// Whether the inventory has partitions.
  bool has_partitions = false;
  /// Same as in LedgerRules.
  std::size_t max_bytes = LedgerRules{}.max_bytes;
};

/// Replaces the configuration; hosts and resources stay the same, except for targets that return.
struct ReloadCommand {
  text::IdSet exclude;
  rset::ResourceSet::Properties property_add;
  rset::ResourceSet::Properties property_remove;
  /// Targets that are no longer excluded and that this command drains, unless they are drained with a reason:
  /// no scheduler sees them up in between.
  struct Drain {
    text::IdSet ranks;
    std::string reason;
  };
  std::vector<Drain> drains = {};
  /// Whether targets of an UnshrinkEvent return now.
  bool returns = false;
  /// The returning targets that are online.
  text::IdSet online = {};
};

/// Defines the inventory: at a start (Module::start()), and in a Flux instance whenever R becomes known or is
/// replaced, as states stay with their ranks there. Otherwise another inventory is loaded in place of the
/// present one, and states move with their targets; there must be no holders then.
struct DefineCommand {
  /// How the inventory became known. That of a load is DefineMethod::reload in any case.
  DefineMethod method = DefineMethod::configuration;
  /// The inventory as configured, found or loaded.
  std::shared_ptr<const rset::ResourceSet> inventory = nullptr;
  /// Ranks to exclude; ranks that are not targets are ignored.
  text::IdSet exclude = {};
  /// Changes of properties at run time; a start finds them in the State. Ranks that the inventory does not
  /// have are ignored.
  rset::ResourceSet::Properties property_add = {};
  rset::ResourceSet::Properties property_remove = {};
  /// Targets that are known to be online, beside those that already are.
  text::IdSet online = {};
  /// KeptInventory::replaced, for a load.
  std::optional<std::string> replaced = std::nullopt;
  /// The rules that divide the inventory from now on, for a start or a load.
  std::vector<PartitionRule> partitions = {};
};

/// Changes that monitoring has seen, in this order. Ranks that are not in the inventory, or already in that
/// state, are ignored; only a target that is online can be torpid.
struct MonitorCommand {
  text::IdSet offline;
  text::IdSet online;
  text::IdSet torpid;
  text::IdSet lively;
  /// Set if the brokers have gone with their instance, so that none of them is lost.
  bool instance_left = false;

  [[nodiscard]] bool empty() const noexcept {
    return offline.empty() && online.empty() && torpid.empty() && lively.empty();
  }
};

/// Records that the hold of a scheduler ends (EvictEvent). The module adds the hosts.
struct EvictCommand {
  EvictEvent event;
};

using Command = std::variant<DrainCommand, UndrainCommand, CancelCommand, PropertyCommand, ExpirationCommand,
                             ShrinkCommand, UnshrinkCommand, ForgetCommand, ReloadCommand, DefineCommand,
                             MonitorCommand, EvictCommand, LedgerCommand>;

}  // namespace resourced::module

// Commands to the resource module, from operators, the configuration and monitoring. Targets are text (an
// idset or a hostlist) because only the module knows which ranks and hosts there are.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/module/allocation.hpp"
#include "core/module/drain_table.hpp"
#include "core/module/event.hpp"
#include "core/module/state.hpp"
#include "core/time.hpp"

namespace resourced::module {

/// Treatment of targets that are already drained, or already undrained.
enum class DrainMode { none, update, overwrite, force_overwrite };

struct DrainCommand {
  std::string targets;
  std::optional<std::string> reason;
  DrainMode mode = DrainMode::none;
  /// A later time schedules the drain. For a target that an operator has drained by then, it begins when that
  /// drain ends by itself or by an undrain that keeps what is scheduled.
  std::optional<WallTime> from = std::nullopt;
  /// When the drain ends by itself.
  std::optional<WallTime> until = std::nullopt;
  /// Refused unless all targets are drained for this reason, or without one if it is empty.
  std::optional<std::string> if_reason = std::nullopt;
  /// Refused if one of the targets is drained, also without a reason.
  bool if_not_drained = false;
};

/// Also cancels the scheduled drains of the targets.
struct UndrainCommand {
  std::string targets;
  std::optional<std::string> reason;
  DrainMode mode = DrainMode::none;
  /// Scheduled drains stay, and those whose time has come begin in place of the drains that end. Unhealthy
  /// targets stay drained for their health.
  bool keeps_scheduled = false;
  /// Refused unless all targets are drained for this reason, or without one if it is empty.
  std::optional<std::string> if_reason = std::nullopt;
};

struct PropertyCommand {
  enum class Op { add, remove };
  Op op = Op::add;
  std::string name;
  std::string targets;
};

struct ExpirationCommand {
  /// The epoch removes the expiration.
  WallTime expiration{};
  /// An enclosing instance says so: its resources may have expired before the word of it came. Otherwise a
  /// time that has passed is refused.
  bool may_have_passed = false;
};

struct ShrinkCommand {
  std::string targets;
};

/// Takes back a shrink (UnshrinkEvent).
struct UnshrinkCommand {
  std::string targets;
};

/// The targets that a scheduler holds in one partition; without a name, in the rest of the inventory.
struct Holding {
  std::string partition;
  text::IdSet targets;
};

/// A scheduler allocates resources, all of them or none.
struct AllocCommand {
  std::vector<AllocationRequest> allocations;
  std::vector<Holding> holdings = {};
};

/// Frees allocations, all of them or none.
struct FreeCommand {
  std::vector<std::string> ids;
  /// Only these targets of the allocation. Requires that it is one.
  std::optional<text::IdSet> ranks = std::nullopt;
  /// The holdings of the scheduler that frees them; nothing for an operator, who may free any.
  std::optional<std::vector<Holding>> holdings = std::nullopt;
};

/// Replaces the configuration; hosts and resources stay the same, except for targets that return.
struct ReloadCommand {
  text::IdSet exclude;
  rset::ResourceSet::Properties property_add;
  rset::ResourceSet::Properties property_remove;
  /// Targets that are no longer excluded and that this command drains, unless they are drained with a reason.
  /// No scheduler sees them up in between.
  struct Drain {
    text::IdSet ranks;
    std::string reason;
  };
  std::vector<Drain> drains = {};
  /// Targets of an UnshrinkEvent return now.
  bool returns = false;
  /// The targets among them that are online.
  text::IdSet online = {};
};

/// Replaces the inventory.
struct LoadCommand {
  std::shared_ptr<const rset::ResourceSet> inventory;
  text::IdSet exclude;
  /// Targets that count as online, in addition to those that already are.
  text::IdSet online;
  /// As KeptInventory has it.
  std::optional<std::string> replaced;
};

/// Changes that monitoring has seen, in this order. Ranks that are not in the inventory, or already in that
/// state, are ignored; only a target that is online can be torpid.
struct MonitorCommand {
  text::IdSet offline;
  text::IdSet online;
  text::IdSet torpid;
  text::IdSet lively;
  /// The brokers have gone with their instance, so none of them is lost.
  bool instance_left = false;

  [[nodiscard]] bool empty() const noexcept {
    return offline.empty() && online.empty() && torpid.empty() && lively.empty();
  }
};

using Command =
    std::variant<DrainCommand, UndrainCommand, PropertyCommand, ExpirationCommand, ShrinkCommand,
                 UnshrinkCommand, ReloadCommand, LoadCommand, MonitorCommand, AllocCommand, FreeCommand>;

/// Defines the inventory of a module that has brokers, or replaces it.
struct DefineCommand {
  DefineMethod method = DefineMethod::configuration;
  /// As configured, found or loaded.
  std::shared_ptr<const rset::ResourceSet> inventory;
  /// Ranks that are no targets are ignored.
  text::IdSet exclude;
  /// Changes of run time. Ranks that the inventory does not have are ignored.
  rset::ResourceSet::Properties property_add;
  rset::ResourceSet::Properties property_remove;
};

/// The state with which a module with brokers begins, where an earlier process on the same store has ended.
struct RecalledInstance {
  std::vector<DrainGroup> drains;
  /// The drains of targets that the instance does not have now.
  std::vector<RecordedDrain> absent;
  /// Present if the inventory was known.
  std::optional<DefineCommand> definition;
};
/// Finds the targets of `states` by name among these brokers.
[[nodiscard]] RecalledInstance recall_instance(const text::Hostlist& brokers, const AbsentStates& states,
                                               const KeptInventory& kept,
                                               const std::optional<RunTimeExpiration>& expiration);

/// Starts the module: the inventory becomes known, and the state of its targets with it.
struct StartCommand {
  DefineMethod method = DefineMethod::configuration;
  std::shared_ptr<const rset::ResourceSet> inventory;
  text::IdSet exclude;
  /// Targets known to be online.
  text::IdSet online;
};

}  // namespace resourced::module

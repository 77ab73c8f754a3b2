// The resource module: the inventory, the state of each execution target, and what follows from a command
// (RFC 28, RFC 44). `decide` looks and answers with events, `apply` folds one event into the state; a start
// goes through the same `apply`. Who has acquired the resources is kept beside it (acquisition.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/module/command.hpp"
#include "core/module/delta.hpp"
#include "core/module/drain_table.hpp"
#include "core/module/event.hpp"
#include "core/module/target_names.hpp"

namespace resourced {

/// What one event changed: for schedulers, and for the tables that the store keeps of the present.
struct Outcome {
  Delta delta;
  /// Targets whose drain entry is another now, and targets that are drained no more.
  std::vector<DrainGroup> drained;
  IdSet undrained;
};

/// A property of a target, against the configuration. One that was added at run time stays `added` when the
/// configuration has it as well.
struct PropertyState {
  enum class Difference { same, added, removed };
  std::string name;
  IdSet ranks;
  Difference difference = Difference::same;
};

class Module {
 public:
  /// An event of a start, and whether it is new or repeats what the store has already.
  struct StartEvent {
    Event event;
    bool recorded = false;
  };

  /// The events that a command causes, in order; none if it asks for what is so already.
  /// Throws Error with the errno and text that operators know; the state is unchanged either way.
  [[nodiscard]] std::vector<Event> decide(const Command& command, double now) const;

  /// The events of a start, for a module that has no inventory yet. A recorded drain goes to the present rank
  /// of its host, or is dropped with its host; an excluded target is undrained.
  [[nodiscard]] static std::vector<StartEvent> start(const StartCommand& command, double now);

  Outcome apply(const Event& event);

  /// Whether the inventory is known.
  [[nodiscard]] bool defined() const noexcept { return defined_; }
  [[nodiscard]] DefineMethod method() const noexcept { return method_; }
  /// Everything, excluded targets too; less what left for good.
  [[nodiscard]] const ResourceSet& inventory() const noexcept { return inventory_; }
  [[nodiscard]] const IdSet& excluded() const noexcept { return exclude_; }
  /// The targets that a scheduler may be given, up or not.
  [[nodiscard]] IdSet acquirable() const { return inventory_.ranks() - exclude_; }
  /// The targets that are up: acquirable, online, neither drained nor torpid. Kept up to date, never
  /// recomputed.
  [[nodiscard]] const IdSet& available() const noexcept { return available_; }
  [[nodiscard]] const DrainTable& drains() const noexcept { return drains_; }
  [[nodiscard]] const IdSet& online() const noexcept { return online_; }
  [[nodiscard]] const IdSet& torpid() const noexcept { return torpid_; }
  /// The inventory before anything was changed at run time; with the targets that left for good, since they
  /// count in the names of the others.
  [[nodiscard]] const ResourceSet& configured() const noexcept { return configured_; }
  /// How the store knows these ranks.
  [[nodiscard]] TargetNames names(const IdSet& ranks) const { return names_of(ranks, configured_); }
  /// How a property of these targets stands against the configuration, for the store.
  [[nodiscard]] std::vector<PropertyState> property_states(const std::string& name, const IdSet& ranks) const;

  /// Grows with every change of the inventory (R or exclusion) and of anything at all: what is derived from
  /// the state stays true as long as the number does.
  [[nodiscard]] std::uint64_t inventory_version() const noexcept { return inventory_version_; }
  [[nodiscard]] std::uint64_t state_version() const noexcept { return state_version_; }

 private:
  [[nodiscard]] std::vector<Event> decide_on(const DrainCommand& command, double now) const;
  [[nodiscard]] std::vector<Event> decide_on(const UndrainCommand& command, double now) const;
  [[nodiscard]] std::vector<Event> decide_on(const PropertyCommand& command, double now) const;
  [[nodiscard]] std::vector<Event> decide_on(const ExpirationCommand& command, double now) const;
  [[nodiscard]] std::vector<Event> decide_on(const ShrinkCommand& command, double now) const;
  [[nodiscard]] std::vector<Event> decide_on(const ReloadCommand& command, double now) const;
  [[nodiscard]] std::vector<Event> decide_on(const LoadCommand& command, double now) const;
  [[nodiscard]] std::vector<Event> decide_on(const MonitorCommand& command, double now) const;

  void apply_to(const RestartEvent& event, double timestamp, Outcome& outcome);
  void apply_to(const DefineEvent& event, double timestamp, Outcome& outcome);
  void apply_to(const UpdateEvent& event, double timestamp, Outcome& outcome);
  void apply_to(const DrainEvent& event, double timestamp, Outcome& outcome);
  void apply_to(const UndrainEvent& event, double timestamp, Outcome& outcome);
  void apply_to(const OnlineEvent& event, double timestamp, Outcome& outcome);
  void apply_to(const OfflineEvent& event, double timestamp, Outcome& outcome);
  void apply_to(const TorpidEvent& event, double timestamp, Outcome& outcome);
  void apply_to(const LivelyEvent& event, double timestamp, Outcome& outcome);

  void shrink(const IdSet& ranks, Outcome& outcome);
  /// States go with their targets to another inventory.
  void move_states(const ResourceSet& next);
  /// Brings `available_` up to date for targets whose state has changed, and reports what became of them.
  void settle(const IdSet& touched, Delta& delta);

  bool defined_ = false;
  DefineMethod method_ = DefineMethod::configuration;
  ResourceSet inventory_;
  ResourceSet configured_;
  // As DefineEvent has them.
  ResourceSet::Properties kept_properties_;
  IdSet exclude_;
  IdSet online_;
  IdSet torpid_;
  DrainTable drains_;
  IdSet available_;
  std::uint64_t inventory_version_ = 0;
  std::uint64_t state_version_ = 0;
};

}  // namespace resourced

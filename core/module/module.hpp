// The resource module: decisions on commands (RFC 28, RFC 44). `decide` returns events and changes nothing,
// `apply` applies one event to the State (state.hpp) and to the data derived from it. Holders of the
// resources are kept in acquisition.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/module/command.hpp"
#include "core/module/event.hpp"
#include "core/module/state.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::module {

/// Drains that end now, and scheduled drains that begin now.
struct DueDrains {
  std::vector<Event> events;
  /// Targets whose scheduled drain waits from now on: an operator has drained them.
  text::IdSet waiting;
};

class Module {
 public:
  /// Upper bound of the groups of targets whose drains begin or end in one step.
  static constexpr std::size_t most_at_once = 16;

  /// A module whose inventory is not known.
  Module() = default;
  /// A module with the State to which the events of a log have led.
  explicit Module(State state);

  /// The events that a command causes, in order; none if it changes nothing.
  /// Throws Error with the errno and text that operators know; the state is unchanged either way.
  [[nodiscard]] std::vector<Event> decide(const Command& command, WallTime now) const;

  /// Returns the events of a start. The state of a target goes to its present rank, or waits for its host. An
  /// excluded target is undrained.
  [[nodiscard]] std::vector<Event> start(const DefineCommand& command, WallTime now) const;

  /// Throws Error ENOSYS with this text in a Flux instance, for what an instance does not have.
  void refuse_in_instance(const char* why) const;

  /// Returns the event by which targets leave the inventory because they have lost their brokers; none if the
  /// inventory keeps such targets.
  [[nodiscard]] std::vector<Event> lose(const text::IdSet& targets, WallTime now) const;

  /// Returns the events of drains that end by now and, after them, of scheduled drains that begin by now. A
  /// scheduled drain waits while an operator has drained the target. There may be `most` events for each of
  /// these two, and for the scheduled drains that begin as others end; the rest is due next.
  [[nodiscard]] DueDrains due(WallTime now, std::size_t most = most_at_once) const;
  /// Lets the scheduled drains of these targets wait until an operator's drain of the target ends.
  void wait(const text::IdSet& targets);
  /// The next time at which due() returns events if no state changes: now, if that time has come.
  [[nodiscard]] std::optional<WallTime> next_due() const;

  /// Returns the events that free expired allocations, those first that expired first. The work of one call
  /// is bounded: the rest is due next.
  [[nodiscard]] std::vector<Event> free_expired(WallTime now) const;

  Outcome apply(const Event& event);

  [[nodiscard]] const State& state() const noexcept { return state_; }
  // Parts of the state (state.hpp).
  [[nodiscard]] bool has_brokers() const noexcept { return state_.has_brokers(); }
  [[nodiscard]] bool has_targets() const noexcept { return state_.has_targets(); }
  [[nodiscard]] bool keeps_allocations() const noexcept { return state_.keeps_allocations(); }
  [[nodiscard]] const text::Hostlist& brokers() const noexcept { return state_.brokers; }
  [[nodiscard]] const rset::ResourceSet& addressable() const noexcept { return state_.addressable(); }
  [[nodiscard]] bool defined() const noexcept { return state_.defined; }
  [[nodiscard]] DefineMethod method() const noexcept { return state_.method; }
  [[nodiscard]] const rset::ResourceSet& inventory() const noexcept { return state_.inventory; }
  [[nodiscard]] const rset::ResourceSet& recorded_inventory() const noexcept {
    return state_.recorded_inventory();
  }
  [[nodiscard]] const rset::ResourceSet& configured() const noexcept { return state_.configured; }
  [[nodiscard]] const text::IdSet& excluded() const noexcept { return state_.exclude; }
  [[nodiscard]] const text::IdSet& available() const noexcept { return state_.available; }
  [[nodiscard]] const TargetStates& states() const noexcept { return state_.targets; }
  [[nodiscard]] const DrainTable& drains() const noexcept { return state_.targets.drains; }
  [[nodiscard]] const Schedules& scheduled_drains() const noexcept { return state_.targets.scheduled; }
  [[nodiscard]] const text::IdSet& online() const noexcept { return state_.targets.online; }
  [[nodiscard]] const text::IdSet& torpid() const noexcept { return state_.targets.torpid; }
  [[nodiscard]] const Ledger& ledger() const noexcept { return state_.ledger; }
  [[nodiscard]] text::IdSet shrunk() const { return state_.shrunk(); }
  [[nodiscard]] const text::IdSet& returning() const noexcept { return state_.returning; }
  [[nodiscard]] PropertyChanges property_changes() const { return state_.property_changes(); }
  [[nodiscard]] TargetNames names(const text::IdSet& ranks) const { return state_.names(ranks); }

  [[nodiscard]] text::IdSet acquirable() const { return state_.acquirable(); }
  /// Returns those of these targets that are drained for silence, or for their health by the agent of their
  /// host.
  [[nodiscard]] text::IdSet drained_by_daemon(const text::IdSet& targets) const;
  /// Returns the hosts of the targets that a command names, including those that left for good. Throws Error
  /// EINVAL as the command does for unknown targets.
  [[nodiscard]] text::Hostlist hosts_named(std::string_view targets) const;

  /// Numbers that grow with each change of the inventory (R or exclusion), and of any state but the ledger,
  /// which has a number of its own: a value derived from the state is valid as long as the number is the
  /// same.
  [[nodiscard]] std::uint64_t inventory_version() const noexcept { return inventory_version_; }
  [[nodiscard]] std::uint64_t state_version() const noexcept { return state_version_; }

 private:
  // Decisions that are in drain_commands.cpp.
  [[nodiscard]] std::vector<Event> decide_on(const DrainCommand& command, WallTime now) const;
  /// Returns the drains by which an operator takes over drains of these targets for ill health or silence:
  /// without them the daemon could end these drains by itself. Such a drain gets the reason of the command,
  /// or keeps its own if there is none. More such drains than `most` may be left.
  [[nodiscard]] std::vector<Event> take_over(const text::IdSet& targets, const DrainEvent& drain,
                                             WallTime now, std::size_t most) const;
  /// Returns those of these targets that an operator has drained.
  [[nodiscard]] text::IdSet drained_by_operators(const text::IdSet& targets) const;
  [[nodiscard]] std::vector<Event> decide_on(const UndrainCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const CancelCommand& command, WallTime now) const;
  void check_terms(const DrainCommand& command, WallTime now) const;
  void check_reason(const text::IdSet& targets, const std::optional<std::string>& reason) const;
  /// Scheduled drains whose time has come and that begin as the drains of these targets end.
  struct Replacements {
    std::vector<Event> events;
    text::IdSet begun;
    /// Targets that have to wait, as there may be more such drains than these events.
    text::IdSet later;
  };
  [[nodiscard]] Replacements begin_in_place(const text::IdSet& ending, WallTime now, std::size_t most) const;
  /// The parts of due(). cancel_due() cancels scheduled drains that are over before they could begin.
  /// end_due() ends drains, begins others in their place, and returns the targets of these. begin_due()
  /// begins the others. The last two require that no scheduled drain is over.
  [[nodiscard]] text::IdSet end_due(WallTime now, std::size_t most, std::vector<Event>& events) const;
  void cancel_due(WallTime now, std::size_t most, std::vector<Event>& events) const;
  void begin_due(WallTime now, std::size_t most, const text::IdSet& begun, DueDrains& due) const;
  /// Updates `pending_` and `waiting_` by the changes of an event.
  void follow_schedules(const DrainChanges& changes);
  /// Lets the scheduled drains of these targets wait no longer.
  void look_again(const text::IdSet& targets);
  [[nodiscard]] std::vector<Event> schedule(const DrainCommand& command, const text::IdSet& targets,
                                            WallTime now) const;
  // Decisions that are in start.cpp and module.cpp.
  [[nodiscard]] std::vector<Event> decide_on(const DefineCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const MonitorCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const EvictCommand& command, WallTime now) const;
  // Decisions that are in inventory_commands.cpp.
  [[nodiscard]] std::vector<Event> decide_on(const PropertyCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const ExpirationCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const ShrinkCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const UnshrinkCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const ForgetCommand& command, WallTime now) const;
  [[nodiscard]] std::vector<Event> decide_on(const ReloadCommand& command, WallTime now) const;
  // Decisions that are in ledger_commands.cpp.
  [[nodiscard]] std::vector<Event> decide_on(const LedgerCommand& command, WallTime now) const;

  /// Returns the inventory with the targets that will return.
  [[nodiscard]] rset::ResourceSet with_returned() const;
  /// Finds targets among `set`. With brokers, hosts are those of the recorded inventory once it is known, as
  /// in Flux.
  [[nodiscard]] text::IdSet find_targets(std::string_view text, const rset::ResourceSet& set) const;
  /// Whether a command is recorded although it changes nothing, as in Flux.
  [[nodiscard]] bool records_unchanged() const noexcept { return has_brokers(); }
  /// Whether a target leaves the inventory when its broker is lost.
  [[nodiscard]] bool loses_targets() const noexcept {
    return has_brokers() && defined() && method() != DefineMethod::configuration;
  }

  State state_;
  /// The next scheduled drain of each target but those of `waiting_`, so that a wait costs nothing while it
  /// lasts.
  DrainTable pending_;
  text::IdSet waiting_;
  std::uint64_t inventory_version_ = 0;
  std::uint64_t state_version_ = 0;
};

/// Returns the definition that a module with brokers had when an earlier process ended; nothing if none is
/// kept. Ranks and run-time properties follow their hosts to the brokers of `state`.
[[nodiscard]] std::optional<DefineCommand> recall_definition(const State& state);

}  // namespace resourced::module

// The resource module behind one function, which takes an input and returns its effects. The engine reads no
// clock, file or socket and calls nothing back: its owner carries the effects out, in the order that
// `Effects` states.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine/record.hpp"
#include "core/engine/trusted_clock.hpp"
#include "core/module/acquisition.hpp"
#include "core/module/module.hpp"
#include "core/module/partition.hpp"
#include "core/module/reservations.hpp"
#include "core/nodes/nodes.hpp"
#include "core/time.hpp"

namespace resourced::engine {

using HolderId = module::Acquisition::HolderId;

/// The time of a step.
struct Now {
  /// The timestamp of events, which may be set back.
  WallTime wall{};
  /// The clock for the deadlines of node agents and the enclosing instance, which is never set.
  SteadyTime steady{};
};

/// The brokers of a Flux instance, whose ranks are its targets, from 0.
struct Brokers {
  /// The host of each rank, in the order of ranks. Not empty.
  text::Hostlist hosts;
  /// The ranks whose brokers are online now.
  text::IdSet online;
  /// Drains that the instance has recorded itself (RestartEvent). For its first Start only.
  std::vector<module::DrainGroup> drains = {};
  /// Ranks that are online for good, also ranks of R that have no broker: the instance makes its resources
  /// up.
  text::IdSet forced_online = {};
};

/// Starts the module, before any command: defines the present inventory, and moves the states of its targets
/// to it. In a Flux instance there is no command yet, as R may not be known: a DefineCommand follows. There a
/// Start comes again if the instance has other brokers than before: drains stay with their hosts, the
/// inventory is not known until it is defined again, and there must be no holders.
struct Start {
  module::DefineCommand command = {};
  /// The state after the last event of the log. Not for a Start that comes again.
  module::State state = {};
  /// In a Flux instance, in place of the command.
  std::optional<Brokers> brokers = {};
  /// How long targets that are online at the start stay so without a node agent, where agents are watched.
  Seconds grace{0};
  /// The holders under the previous leader of a cluster (module::Reservations).
  std::vector<module::PartitionHolder> former_holders = {};
  module::LedgerRules ledger = {};
};

/// A scheduler acquires a partition, or without a name all targets that are in no partition (RFC 28).
/// Requires a defined inventory. The actor of the step is the scheduler.
struct Acquire {
  HolderId holder = 0;
  std::optional<std::string> partition;
  /// The scheduler's allocations are reported, by itself or by the job manager of its Flux instance, so that
  /// its other targets are known to be free.
  bool allocations = false;
  module::Extensions extensions = {};
};

/// Takes over a scheduler that acquired its resources from an earlier process. The fields are the state that
/// it was told; its update is the difference to the present state. A target that was up and is not online now
/// has lost its broker meanwhile (Module::lose). Requires a defined inventory.
struct Resume {
  HolderId holder = 0;
  /// The targets that the scheduler acquired, without those that have left.
  text::IdSet resources;
  text::IdSet up;
  WallTime expiration{};
  /// Properties of all targets that differ from the configuration.
  module::PropertyChanges properties = {};
  /// The scheduler gets no update.
  bool muted = false;
  module::Extensions extensions = {};
};

/// Releases the targets of a holder. Targets that it kept from other holders come up for those. An unknown
/// holder is ignored.
struct Release {
  HolderId holder = 0;
};

/// Sends no further changes to the present holders.
struct Mute {};

/// A scheduler changes allocations of targets that it holds. `holders` are all holders that the scheduler
/// has; the engine fills in what they hold. A command without a scheduler, by which an operator frees any, is
/// an input of its own.
struct ChangeLedger {
  std::vector<HolderId> holders;
  module::LedgerCommand command;
};

/// Sets the rules of the ledger, which replace those of the start.
struct KeepLedger {
  module::LedgerRules rules;
};

/// A client sets the expiration of this instance. It holds against one that the enclosing instance set
/// earlier.
struct SetExpiration {
  module::ExpirationCommand command;
};

/// Watches node agents with these settings, which replace earlier ones.
struct WatchNodes {
  nodes::Settings settings;
};

/// Builds the inventory from the reports of node agents. Requires WatchNodes. Comes before a Start, which
/// follows Effects::discovered.
struct Discover {
  nodes::DiscoverySettings settings;
  nodes::RecordedHosts recorded;
};

/// Names hosts for which the discovery does not wait. Without effect after the discovery.
struct DiscoverWithout {
  text::Hostlist hosts;
};

/// A node agent says hello (nodes::Nodes::hello()).
struct AgentHello {
  nodes::AgentId agent = 0;
  nodes::ConnectionId connection = 0;
  nodes::NodeReport report;
  /// The origin of the connection (nodes::Rivals::Speaker::origin).
  std::string origin = {};
};

/// A sign of life of an agent.
struct AgentBeat {
  nodes::AgentId agent = 0;
};

/// A check of a node's health has ended (nodes::Nodes::health()).
struct AgentHealth {
  nodes::AgentId agent = 0;
  nodes::HealthReport report;
};

/// An agent has left, or its connection is lost.
struct AgentEnd {
  nodes::AgentId agent = 0;
  nodes::Nodes::End end = nodes::Nodes::End::lost;
};

/// Takes online targets offline until their agents say hello again. Refused with EINVAL if one is not in the
/// inventory, or with brokers not in Module::addressable().
struct ForceDown {
  text::IdSet ranks;
};

/// This instance is inside another one: from now on a target is online only if it is available in that one,
/// too. Comes after the Start.
struct Enclose {};

/// A change in the enclosing instance.
struct ParentSays {
  nodes::ParentChange change;
};

/// Time has passed: a Tick is due at next_deadline() and at next_due(). An earlier or later one does no harm.
struct Tick {};

using Input = std::variant<Start, module::Command, Acquire, Resume, Release, Mute, ChangeLedger, KeepLedger,
                           SetExpiration, WatchNodes, Discover, DiscoverWithout, AgentHello, AgentBeat,
                           AgentHealth, AgentEnd, ForceDown, Enclose, ParentSays, Tick>;

/// A change for one holder.
struct Update {
  /// The last event whose changes the update contains.
  Sequence after = 0;
  HolderId holder = 0;
  module::Delta delta;
};

/// The effects of one input.
struct Effects {
  /// The events that were applied, and changes of the ledger, in order. They go to the log first, together: a
  /// crash keeps all of them or none (log::EventLog::append_all), so that an allocation is never lost between
  /// the free and the alloc that replace it. Nothing that tells of an event, or of the state after it, may
  /// leave before the log has that event.
  std::vector<Record> records;
  /// Changes for holders, in order. Each may leave once the log has its event `after`.
  std::vector<Update> updates;
  /// News for node agents, in order. Each may leave once the log has the event applied(), as a rank tells of
  /// the inventory.
  std::vector<nodes::AgentNews> agents;
  /// Nodes that are drained, among the records or before, and do not match the inventory or are unhealthy:
  /// each is worth a line of the daemon's log.
  std::vector<nodes::UnfitNode> unfit;
  /// Hosts that stay down as the gate requires checks and their agents run none: one line of the daemon's log
  /// names all of them.
  text::Hostlist without_checks;
  /// Targets whose agents have begun or ceased to take turns: each is worth a line of the daemon's log.
  std::vector<nodes::Rivalry> rivalries;
  /// Whether Health::unchecked() has changed.
  bool health_changed = false;
  /// Errors of commands that follow from nodes or the enclosing instance and were refused, for the daemon's
  /// log.
  std::vector<Error> refused;
  /// The inventory that the agents have reported. The owner sends a Start for it, after all other effects.
  std::optional<rset::ResourceSet> discovered;
  /// The targets of an Acquire, and those of them that no other holder keeps (Acquisition::Acquired). The
  /// response may leave once the log has the event applied().
  struct Acquired {
    text::IdSet resources;
    text::IdSet kept;
  };
  std::optional<Acquired> acquired;
};

class Engine {
 public:
  /// `last` and `last_timestamp` are those of the last event in the log; 0 and the epoch for an empty log.
  explicit Engine(Sequence last = 0, WallTime last_timestamp = {})
      : last_timestamp_(last_timestamp), applied_(last) {}

  /// Takes one input. Throws Error, and nothing has changed, if the input is refused: EAGAIN for a command
  /// before the inventory is known (with brokers: for one that needs it), EINVAL for partitions that would
  /// overlap, EBUSY for a partition that is reserved for another actor (module::Reservations), EPERM for a
  /// ChangeLedger without holders, and what Module::decide(), Acquisition::acquire() and
  /// nodes::Nodes::hello() throw.
  ///
  /// The clock `now` decides which drains are due and which times have passed. Events are stamped with it, or
  /// with the time of the last one while the clock is behind that.
  ///
  /// `by` is the actor that caused the input, and so of its events; nothing for time and for inputs of the
  /// daemon itself. The events that follow from a report of a node agent are by its host.
  [[nodiscard]] Effects step(Input input, Now now, std::optional<module::Actor> by = std::nullopt);

  /// Throws Error EAGAIN as long as the inventory is not known, with the progress of the discovery.
  void require_inventory() const;
  /// Does the same as long as the targets are not known (State::has_targets()).
  void require_targets() const;

  /// The time at which a Tick has something to do if no other input comes until then.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;
  /// The time at which drains begin or end by themselves, or allocations expire, by the wall clock, which may
  /// be set meanwhile.
  [[nodiscard]] std::optional<WallTime> next_due(WallTime now) const;

  /// The last event that was applied: answers about the present state may leave once it is in the log.
  [[nodiscard]] Sequence applied() const noexcept { return applied_; }
  /// The timestamp of the last event that was applied.
  [[nodiscard]] WallTime applied_at() const noexcept { return last_timestamp_; }

  /// How far the log is ahead of the clock: events keep the timestamp of the last one until the clock is
  /// there. 0 as a rule.
  [[nodiscard]] Seconds ahead_of(WallTime now) const noexcept {
    return std::max(Seconds(0), last_timestamp_ - now);
  }

  [[nodiscard]] const module::Module& module() const noexcept { return module_; }
  /// Whether the module has the state after event applied(). It has none before a Start or Begin, which bring
  /// that of the log.
  [[nodiscard]] bool has_state() const noexcept { return module_.has_targets(); }
  /// The allocations that concern a scheduler with these targets, by name: those on any of them, and those
  /// that were made in its partition, if it has the extension `ledger`, or whose targets can all not be
  /// acquired any more.
  [[nodiscard]] std::vector<module::SharedAllocation> allocations_of(const text::IdSet& targets,
                                                                     const std::string& partition,
                                                                     bool ledger) const;
  /// The scheduled drains of these targets.
  [[nodiscard]] module::ScheduledDrains scheduled_for(const text::IdSet& targets) const;
  /// States of targets that the present inventory lacks, or the instance.
  [[nodiscard]] const module::AbsentStates& absent() const noexcept { return module_.state().absent; }
  [[nodiscard]] const module::Acquisition& acquisition() const noexcept { return acquisition_; }
  /// Partitions that are kept for their former holders.
  [[nodiscard]] const module::Reservations& reservations() const noexcept { return reservations_; }
  [[nodiscard]] const nodes::Nodes& nodes() const noexcept { return nodes_; }

 private:
  /// The time of an input, its actor, and all holders of the scheduler that sent it.
  struct Occasion : Now {
    std::optional<module::Actor> by;
    std::vector<HolderId> senders = {};
  };

  void take(Start&& input, const Occasion& now, Effects& effects);
  void take(module::Command&& command, const Occasion& now, Effects& effects);
  void take(const Acquire& input, const Occasion& now, Effects& effects);
  void take(const Resume& input, const Occasion& now, Effects& effects);
  void take(const Release& input, const Occasion& now, Effects& effects);
  void take(const Mute& input, const Occasion& now, Effects& effects);
  void take(ChangeLedger&& input, const Occasion& now, Effects& effects);
  void take(const KeepLedger& input, const Occasion& now, Effects& effects);
  void take(const SetExpiration& input, const Occasion& now, Effects& effects);
  void take(const WatchNodes& input, const Occasion& now, Effects& effects);
  void take(const Discover& input, const Occasion& now, Effects& effects);
  void take(const DiscoverWithout& input, const Occasion& now, Effects& effects);
  void take(const AgentHello& input, const Occasion& now, Effects& effects);
  void take(const AgentBeat& input, const Occasion& now, Effects& effects);
  void take(const AgentHealth& input, const Occasion& now, Effects& effects);
  void take(const AgentEnd& input, const Occasion& now, Effects& effects);
  void take(const ForceDown& input, const Occasion& now, Effects& effects);
  void take(const Enclose& input, const Occasion& now, Effects& effects);
  void take(const ParentSays& input, const Occasion& now, Effects& effects);
  void take(const Tick& input, const Occasion& now, Effects& effects);

  void begin(const Brokers& brokers, module::State state, const Occasion& now, Effects& effects);
  /// Sets the rules that divide the inventory from now on.
  void set_rules(const std::vector<module::PartitionRule>& rules);
  void apply(module::Event event, const Occasion& now, Effects& effects);
  /// Decides and applies a command.
  void execute(const module::Command& command, const Occasion& now, Effects& effects);
  /// Decides and applies several commands. One that is refused does not stop the others.
  void execute_all(const std::vector<module::Command>& commands, const Occasion& now, Effects& effects);
  /// Throws Error EINVAL if an undrain of these events has nodes that do not match the inventory.
  void check_matching(const std::vector<module::Event>& events) const;
  /// Applies events that end drains, or begin scheduled ones in their place.
  void apply_ends(std::vector<module::Event> events, const Occasion& now, Effects& effects);
  /// Takes out of the end of a drain the nodes that do not match the inventory, or are unhealthy: they are
  /// drained for this from now on.
  void keep_unfit_drained(module::UndrainEvent& end, const Occasion& now, Effects& effects);
  void carry_out(nodes::Findings findings, const Occasion& now, Effects& effects);
  [[nodiscard]] module::Acquisition::Tell teller(Effects& effects);
  /// An allocation before an event that changes it; null if the event makes it.
  using Former = std::pair<module::AllocationName, module::SharedAllocation>;
  /// Returns the allocations that an event will change; none if no holder is told of them.
  [[nodiscard]] std::vector<Former> changing(const module::EventBody& event) const;
  /// Tells holders with the extension `ledger` how these allocations have changed.
  void announce_allocations(const std::vector<Former>& changed, const Occasion& now, Effects& effects);
  /// Returns the holders with the extension `ledger` that an allocation on these targets concerns.
  [[nodiscard]] std::set<HolderId> ledgers_with(const module::AllocationName& name,
                                                const text::IdSet& ranks) const;
  /// Tells holders with the extension `ledger` of the allocations that have expired since the last call.
  void announce_expired(WallTime now, Effects& effects);
  /// Executes a command on the ledger, with the rules of this engine.
  void change_ledger(module::LedgerCommand command, const Occasion& now, Effects& effects);
  /// Whether expired allocations are freed now.
  [[nodiscard]] bool frees_expired() const noexcept {
    return ledger_rules_.free_expired && !clock_.distrusted_until();
  }
  [[nodiscard]] std::vector<module::Holding> holdings_of(const std::vector<HolderId>& holders) const;
  /// Divides the inventory as it would be after these events; nothing changes.
  [[nodiscard]] std::vector<module::Partition> divided_after(
      const std::vector<module::Event>& events, const std::vector<module::PartitionRule>& rules) const;

  /// The partitions that change with an update among these events; nothing changes yet.
  [[nodiscard]] module::Acquisition::PartitionChanges changes_of_partitions(
      const std::vector<module::Event>& events) const;

  /// The timestamp of the last event in the log. No later event has an earlier one, so the log stays in order
  /// when the clock is set back.
  WallTime last_timestamp_;
  module::Module module_;
  module::Acquisition acquisition_;
  module::Reservations reservations_;
  nodes::Nodes nodes_;
  std::vector<module::PartitionRule> partitions_;
  module::RulesByProperty rules_by_property_;
  module::LedgerRules ledger_rules_;
  TrustedClock clock_;
  /// When a client last set the expiration of this instance, in wall time.
  WallTime own_expiration_set_{};
  /// The time up to which holders were told of expired allocations.
  WallTime expired_told_{};
  Sequence applied_;
  /// Module::next_due() of this state, which is asked for after each step.
  struct Due {
    std::optional<std::uint64_t> version;
    std::optional<WallTime> next;
  };
  mutable Due due_;
};

}  // namespace resourced::engine

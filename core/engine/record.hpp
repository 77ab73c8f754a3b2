// The record of one event in the log: the event, and the rows of the tables of the present that it changes. A
// start reads only these tables, so its time does not depend on the length of the log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/module/module.hpp"
#include "core/module/snapshot.hpp"
#include "core/text/hostlist.hpp"
#include "core/time.hpp"

namespace resourced::engine {

/// Numbers events from 1, over all starts on one log.
using Sequence = std::uint64_t;

/// The rows of the tables of the present that an event changes. A target is named by its host and its ordinal
/// among the targets of that host (TargetNames).
struct TableChanges {
  /// Targets whose drain entry has changed to this one. Those of `undrained` are no longer drained.
  struct Drained {
    module::TargetNames targets;
    WallTime timestamp{};
    std::optional<std::string> reason;
    std::optional<module::Actor> by = std::nullopt;
    std::optional<WallTime> until = std::nullopt;
  };
  std::vector<Drained> drained;
  module::TargetNames undrained;
  /// The same for drains that are scheduled, with the time when they begin.
  std::vector<Drained> scheduled;
  module::TargetNames unscheduled;
  /// A property of these targets compared with the configuration.
  struct Property {
    std::string name;
    module::TargetNames targets;
    module::PropertyState::Difference difference = module::PropertyState::Difference::same;
  };
  std::vector<Property> properties;
  /// Allocations that are new or have changed, and those that have ended. Targets are found by host and
  /// ordinal (module::RecordedAllocation).
  struct Allocated {
    std::string id;
    /// An R. Shared with the ledger, as a rule.
    std::shared_ptr<const std::string> resources;
    std::vector<std::uint32_t> ordinals;
    std::optional<WallTime> expiration;
    std::optional<std::string> note;
    std::string partition;
  };
  std::vector<Allocated> allocated;
  std::vector<std::string> freed;
  /// Empty the table of allocations first.
  bool forget_allocations = false;
  /// Empty the table of properties first.
  bool forget_properties = false;
  /// Targets that left for good.
  module::TargetNames shrunk;
  /// Targets that count no longer as having left for good: their shrink was taken back.
  module::TargetNames unshrunk;
  std::optional<module::RecordedState::Expiration> expiration;
  /// An R that no configuration has, so a restart reads it from the log: as it was discovered or loaded, or
  /// as the brokers have it, without changes of run time.
  struct Inventory {
    module::DefineMethod method = module::DefineMethod::dynamic_discovery;
    std::string text;
    /// For a loaded R the text of the configured one that it replaced; nothing where none is configured.
    std::optional<std::string> replaced;
  };
  std::optional<Inventory> inventory;
  /// The hosts of the brokers of a Flux instance that begins.
  std::optional<text::Hostlist> brokers;
  /// Empty the table of drains first, as some of its targets are gone; or that of scheduled drains.
  bool forget_drains = false;
  bool forget_scheduled = false;
  /// Empty the table of targets that left for good first: a new inventory has all its targets.
  bool forget_shrunk = false;
  /// Remove a loaded R from the table, as a changed configuration has replaced it.
  bool forget_loaded = false;
};

struct Record {
  Sequence sequence = 0;
  module::Event event;
  /// concerned(), and the hosts of these targets.
  text::IdSet ranks;
  text::Hostlist hosts;
  /// R as of a resource-define (RFC 44 has it beside the event); null for other events.
  std::shared_ptr<const std::string> resources;
  TableChanges changes;
  /// Set for UpdateEvent::lost: the log of an instance writes nothing for the event, a store only that there
  /// was one, and the journal skips it. Only schedulers and the present state show it.
  bool hidden = false;
  /// A record of the ledger (module::is_of_ledger): a journal shows it only to consumers that ask for these.
  bool of_ledger = false;
  /// Of a free: the resources that are held no longer.
  std::vector<std::shared_ptr<const rset::ResourceSet>> released;
  /// The state after the event, for the last event of a start or of a definition; null for others.
  std::shared_ptr<const module::Snapshot> snapshot = nullptr;
};

/// The targets that an event concerns. Empty for a definition.
[[nodiscard]] text::IdSet concerned(const module::EventBody& event);

/// The record of an event that has just been applied to `module`.
[[nodiscard]] Record make_record(Sequence sequence, module::Event event, const module::Outcome& outcome,
                                 const module::Module& module);

/// Adds the drains of the module to those that a record writes.
void add_drains(TableChanges& changes, const module::Module& module);

/// The recorded drains, scheduled drains and properties of targets that are not in `configured`.
[[nodiscard]] module::RecordedState absent_of(const module::RecordedState& recorded,
                                              const rset::ResourceSet& configured);
/// Adds these drains and properties to each table that the changes replace.
void keep_absent(TableChanges& changes, const module::RecordedState& absent);

}  // namespace resourced::engine

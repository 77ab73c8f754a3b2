// What one event leaves in the log: the event, and the rows of the present that it changes. A store that
// keeps these tables beside the log starts at the cost of the present, whatever the length of its past.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/module/module.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::engine {

/// Numbers events from 1, over all starts on one log.
using Sequence = std::uint64_t;

/// The rows of the present that an event changes, by host and which of its targets (TargetNames).
struct TableChanges {
  /// Targets whose drain is now this, and those that are drained no more.
  struct Drained {
    TargetNames targets;
    /// Seconds since the Unix epoch.
    double timestamp = 0;
    std::optional<std::string> reason;
  };
  std::vector<Drained> drained;
  TargetNames undrained;
  /// How a property of these targets stands against the configuration.
  struct Property {
    std::string name;
    TargetNames targets;
    PropertyState::Difference difference = PropertyState::Difference::same;
  };
  std::vector<Property> properties;
  /// The table of properties begins anew with this event.
  bool forget_properties = false;
  /// Targets that left for good.
  TargetNames shrunk;
  std::optional<RecordedState::Expiration> expiration;
  /// An R that only the log will know after a restart: as it was discovered or loaded, without what changed
  /// at run time.
  struct Inventory {
    DefineMethod method = DefineMethod::dynamic_discovery;
    std::string text;
    /// For a loaded R the text of the configured one that it stands for; nothing where none is configured.
    std::optional<std::string> replaced;
  };
  std::optional<Inventory> inventory;
  /// The drain table begins anew with this event: some targets are gone.
  bool forget_drains = false;
  /// A new inventory names all targets that there are: none of them has left.
  bool forget_shrunk = false;
  /// A loaded R that is kept is in force no more, as the configuration has changed.
  bool forget_loaded = false;
};

struct Record {
  Sequence sequence = 0;
  Event event;
  /// The targets that the event concerns, and their hosts: none for a definition.
  IdSet ranks;
  Hostlist hosts;
  /// R as of a resource-define (RFC 44 has it beside the event); null for other events.
  std::shared_ptr<const std::string> resources;
  TableChanges changes;
};

}  // namespace resourced::engine

// What one event leaves in the store: a line of the event log, and the rows of the present that it changes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/module/module.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::daemon {

/// Numbers events from 1, over all starts of the daemon on one store.
using Sequence = std::uint64_t;

struct Record {
  Sequence sequence = 0;
  double timestamp = 0;
  std::string name;
  /// The event as one line of JSON.
  std::string text;
  /// The hosts that it concerns.
  Hostlist hosts;
  /// R as of a resource-define (RFC 44 has it beside the event); null for other events, and for a definition
  /// whose R is not known.
  std::shared_ptr<const std::string> resources;

  /// Targets whose drain is now this, and those that are drained no more.
  struct Drained {
    TargetNames targets;
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
  /// The table of properties begins anew with this record.
  bool forget_properties = false;
  /// Targets that left for good.
  TargetNames shrunk;
  std::optional<RecordedState::Expiration> expiration;
  /// An R that only the store will know after a restart: as it was discovered or loaded, without what changed
  /// at run time.
  struct Inventory {
    DefineMethod method = DefineMethod::dynamic_discovery;
    std::string text;
    /// For a loaded R the text of the configured one that it stands for; nothing where none is configured.
    std::optional<std::string> replaced;
  };
  std::optional<Inventory> inventory;
  /// The drain table begins anew with this record: some targets are gone.
  bool forget_drains = false;
  /// A new inventory names all targets that there are: none of them has left.
  bool forget_shrunk = false;
  /// A loaded R that is kept is in force no more, as the configuration has changed.
  bool forget_loaded = false;
};

}  // namespace resourced::daemon

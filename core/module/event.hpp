// What can happen to the resources (RFC 44), as closed types: names exist only in the codec
// (proto/event_json). An event is the outcome of a decision; applying it cannot fail.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced {

/// The instance has started. `nodelist` holds the hosts of `ranks`, in rank order.
struct RestartEvent {
  IdSet ranks;
  IdSet online;
  Hostlist nodelist;
};

enum class DefineMethod { configuration, dynamic_discovery, reload, job_info, kvs };

/// The inventory is known, or known anew. The R travels beside the event (RFC 44 journal), not in its
/// context.
struct DefineEvent {
  DefineMethod method = DefineMethod::configuration;
  std::shared_ptr<const ResourceSet> inventory;
  IdSet exclude;
  /// The same as it was configured, discovered or loaded, before what was changed at run time: with the
  /// targets that left for good. Null in an event that was read from a log, which does not tell it.
  std::shared_ptr<const ResourceSet> configured = nullptr;
  /// Properties that were added at run time where they were not configured. They stay, whatever becomes of
  /// the configuration, until they are taken away at run time.
  ResourceSet::Properties kept_properties = {};
  /// There for an inventory that was loaded in the place of another one: states go where their targets are,
  /// and `replaced` is as RecordedState::Inventory has it.
  struct Loaded {
    std::optional<std::string> replaced;
  };
  std::optional<Loaded> loaded = std::nullopt;
};

/// The inventory has changed in place. Every key says only what is different from before. A decision changes
/// one of three: the expiration (RFC 44's resource-update), properties, or what targets there are (events of
/// this project's own); a log of an earlier daemon has them all under one name.
struct UpdateEvent {
  std::optional<double> expiration;
  ResourceSet::Properties property_add;
  ResourceSet::Properties property_remove;
  /// The hosts of all targets whose properties change, in rank order; logs of earlier daemons have none.
  Hostlist property_nodelist;
  /// Targets that left for good, and their hosts.
  IdSet shrink;
  Hostlist shrink_nodelist;
};

/// All targets whose properties an update changes.
[[nodiscard]] inline IdSet property_targets(const UpdateEvent& event) {
  IdSet targets;
  for (const auto& [name, ranks] : event.property_add) targets |= ranks;
  for (const auto& [name, ranks] : event.property_remove) targets |= ranks;
  return targets;
}

/// What a drain does to a target that is drained already (RFC 44, `overwrite`).
enum class Overwrite { nothing = 0, reason = 1, reason_and_timestamp = 2 };

struct DrainEvent {
  IdSet ranks;
  Hostlist nodelist;
  std::optional<std::string> reason;
  Overwrite overwrite = Overwrite::nothing;
};

struct UndrainEvent {
  IdSet ranks;
  Hostlist nodelist;
  std::optional<std::string> reason;
  /// The mode of the request, as Flux records it.
  Overwrite overwrite = Overwrite::nothing;
};

struct OnlineEvent {
  IdSet ranks;
};
struct OfflineEvent {
  IdSet ranks;
};
struct TorpidEvent {
  IdSet ranks;
};
struct LivelyEvent {
  IdSet ranks;
};

using EventBody = std::variant<RestartEvent, DefineEvent, UpdateEvent, DrainEvent, UndrainEvent, OnlineEvent,
                               OfflineEvent, TorpidEvent, LivelyEvent>;

struct Event {
  /// Seconds since the Unix epoch, > 0.
  double timestamp = 0;
  EventBody body;
};

}  // namespace resourced

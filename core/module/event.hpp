// Events of the resources (RFC 44), as closed types; their names are in the codec (proto/event_json). An
// event is the outcome of a decision; applying it cannot fail.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "core/module/actor.hpp"
#include "core/module/allocation.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::module {

/// Maximum size of a ticket, in bytes.
inline constexpr std::size_t most_ticket_bytes = 256;

/// The terms of a drain, as the actor that drains the target gives them.
struct DrainTerms {
  std::optional<std::string> reason = std::nullopt;
  /// When the drain ends by itself.
  std::optional<WallTime> until = std::nullopt;
  /// The ticket of the site for this work: one line of text, not empty.
  std::optional<std::string> ticket = std::nullopt;
  auto operator<=>(const DrainTerms&) const = default;
  [[nodiscard]] const DrainTerms& terms() const noexcept { return *this; }
};

/// The drain of a target, or the drain that is scheduled for it.
struct Drain : DrainTerms {
  /// The time of the drain; for a scheduled drain, the time when it begins.
  WallTime timestamp{};
  /// The actor that gave this reason. Another actor may have drained the target first, with a reason that was
  /// replaced.
  std::optional<Actor> by = std::nullopt;

  bool operator==(const Drain&) const = default;
  /// Drains are ordered by their timestamps first.
  auto operator<=>(const Drain& other) const {
    return std::tie(timestamp, terms(), by) <=> std::tie(other.timestamp, other.terms(), other.by);
  }
  /// Returns whether an agent, or the agent of this host, has drained the target for ill health.
  [[nodiscard]] bool is_for_health() const noexcept;
  [[nodiscard]] bool is_for_health_of(std::string_view host) const noexcept;
  /// Returns whether the daemon has drained the target for silence.
  [[nodiscard]] bool is_for_silence() const noexcept;
};

/// Targets that have the same drain.
struct DrainGroup : Drain {
  text::IdSet ranks;
  bool operator==(const DrainGroup&) const = default;
};

/// The instance or the daemon has started. `nodelist` has the hosts of `ranks`, in rank order.
struct RestartEvent {
  text::IdSet ranks;
  text::IdSet online;
  text::Hostlist nodelist;
  /// Set if `nodelist` has the hosts of the brokers of a Flux instance, from rank 0. `ranks` has the ranks of
  /// these brokers, and ranks that are online without a broker.
  bool of_brokers = false;
  /// Drains that the instance has recorded itself. A target that has a drain already keeps that one.
  std::vector<DrainGroup> drains = {};
};

enum class DefineMethod { configuration, dynamic_discovery, reload, job_info, kvs };

/// The inventory is known, or has been replaced. R stands beside the event in the journal (RFC 44), since its
/// context has no key for it.
struct DefineEvent {
  DefineMethod method = DefineMethod::configuration;
  std::shared_ptr<const rset::ResourceSet> inventory;
  text::IdSet exclude;
  /// The inventory as it was configured, discovered or loaded, before changes at run time and with the
  /// targets that left for good. Null if it is the same as `inventory`.
  std::shared_ptr<const rset::ResourceSet> configured = nullptr;
  /// Properties that were added at run time and that the configuration did not have. A change of the
  /// configuration does not remove them; a command at run time does.
  rset::ResourceSet::Properties kept_properties = {};
  /// Present if the inventory was loaded in place of another one: states move with their targets, and
  /// `replaced` is that of KeptInventory.
  struct Loaded {
    std::optional<std::string> replaced;
  };
  std::optional<Loaded> loaded = std::nullopt;
};

/// The inventory expires at another time, or with 0 never (resource-update of RFC 44).
struct ExpirationEvent {
  WallTime expiration{};
};

/// Properties of targets have changed. Both maps have only differences.
struct PropertyEvent {
  rset::ResourceSet::Properties added;
  rset::ResourceSet::Properties removed;
  /// The hosts of all targets whose properties change, in rank order; the log of another program may lack
  /// them.
  text::Hostlist nodelist;
};

/// Targets have left for good.
struct ShrinkEvent {
  text::IdSet ranks;
  text::Hostlist nodelist;
};

/// The brokers of these ranks are lost. The ranks leave this inventory only: their drains and other states
/// stay, and the next definition may have them again. No journal shows such an event.
struct LossEvent {
  text::IdSet ranks;
  text::Hostlist nodelist;
};

/// Targets that left for good will be in the inventory again from the next start, or from a reload of the
/// configuration while no scheduler has acquired resources: RFC 28 has no response that adds targets.
struct UnshrinkEvent {
  /// Ranks of the configured inventory, and their hosts.
  text::IdSet ranks;
  text::Hostlist nodelist;
};

/// The drains, scheduled drains and properties that wait for these hosts, which the inventory lacks, are
/// dropped. A target that left for good stays away.
struct ForgetEvent {
  text::Hostlist nodelist;
};

/// Returns all targets whose properties change.
[[nodiscard]] inline text::IdSet property_targets(const PropertyEvent& event) {
  text::IdSet targets;
  for (const auto& [name, ranks] : event.added) targets |= ranks;
  for (const auto& [name, ranks] : event.removed) targets |= ranks;
  return targets;
}

/// The effect of a drain on a target that is already drained (RFC 44, `overwrite`).
enum class Overwrite { nothing = 0, reason = 1, reason_and_timestamp = 2 };

struct DrainEvent : DrainTerms {
  text::IdSet ranks;
  text::Hostlist nodelist;
  Overwrite overwrite = Overwrite::nothing;
  /// Set if the next scheduled drain of each of these targets begins.
  bool scheduled = false;
};

struct UndrainEvent {
  text::IdSet ranks;
  text::Hostlist nodelist;
  std::optional<std::string> reason;
  /// The mode of the request, as Flux records it.
  Overwrite overwrite = Overwrite::nothing;
  /// Whether scheduled drains of the targets stay, as after a drain that ends by itself or that the daemon
  /// ends. Otherwise they are cancelled.
  bool keeps_scheduled = false;
};

/// The targets will be drained at a later time. Replaces the drains that were scheduled for the same time.
struct ScheduleEvent : DrainTerms {
  text::IdSet ranks;
  text::Hostlist nodelist;
  WallTime from{};
};

/// The targets will not be drained as scheduled.
struct CancelEvent {
  text::IdSet ranks;
  text::Hostlist nodelist;
  /// The begin of the scheduled drains that are cancelled; unset for all.
  std::optional<WallTime> from = std::nullopt;
};

/// An operator has ended the hold of a scheduler. Changes no state.
struct EvictEvent {
  /// The targets that the scheduler held, and their hosts.
  text::IdSet ranks;
  text::Hostlist nodelist;
  /// The partition of these targets; empty outside of all partitions.
  std::string partition = {};
  /// The scheduler, if it was known, and since when it held the targets.
  std::optional<Actor> holder = std::nullopt;
  WallTime since{};
  /// The reason that the scheduler was told; may be empty.
  std::string reason = {};
};

struct OnlineEvent {
  text::IdSet ranks;
};
struct OfflineEvent {
  text::IdSet ranks;
};
struct TorpidEvent {
  text::IdSet ranks;
};
struct LivelyEvent {
  text::IdSet ranks;
};

using EventBody = std::variant<RestartEvent, DefineEvent, ExpirationEvent, PropertyEvent, ShrinkEvent,
                               LossEvent, UnshrinkEvent, ForgetEvent, DrainEvent, UndrainEvent, ScheduleEvent,
                               CancelEvent, EvictEvent, OnlineEvent, OfflineEvent, TorpidEvent, LivelyEvent,
                               AllocEvent, AllocUpdateEvent, FreeEvent>;

/// Whether an event changes the inventory in place. A restart and a definition replace it.
[[nodiscard]] inline bool updates_inventory(const EventBody& body) noexcept {
  return std::holds_alternative<ExpirationEvent>(body) || std::holds_alternative<PropertyEvent>(body) ||
         std::holds_alternative<ShrinkEvent>(body) || std::holds_alternative<LossEvent>(body);
}

/// Whether an event is a record of the ledger, which is in the log and not among the events of RFC 44.
[[nodiscard]] inline bool is_of_ledger(const EventBody& body) noexcept {
  return std::holds_alternative<AllocEvent>(body) || std::holds_alternative<AllocUpdateEvent>(body) ||
         std::holds_alternative<FreeEvent>(body);
}

struct Event {
  /// The time of the event, after the epoch.
  WallTime timestamp{};
  EventBody body;
  /// The actor; unset for an event that the daemon causes itself, as at its start or when a time has come.
  std::optional<Actor> by = std::nullopt;
};

}  // namespace resourced::module

// Changes for a scheduler (RFC 28, later acquire responses), and their merge into one net change.
#pragma once

#include <map>
#include <optional>

#include "core/module/allocation.hpp"
#include "core/module/event.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::module {

/// The extensions of RFC 28 that a scheduler may ask for (docs/protocol.md, "Extensions").
struct Extensions {
  /// Changes of allocations by others.
  bool ledger = false;
  /// The scheduled drains of its targets.
  bool scheduled = false;
  /// Why targets went down.
  bool cause = false;
};

/// Why targets went down, one or more causes for each.
struct DownCauses {
  text::IdSet drained;
  text::IdSet offline;
  text::IdSet torpid;
  text::IdSet excluded;
};

/// News of an allocation, for schedulers with the extension `ledger`.
struct AllocationNews {
  /// The allocation as it is now; null once it has ended.
  SharedAllocation now = nullptr;
  /// The targets that were freed of it, if nothing else of it has changed.
  text::IdSet freed = {};
  /// Whether the scheduler needs the whole allocation.
  bool whole = false;
  /// Whether its expiration has passed.
  bool expired = false;
  /// Whether the scheduler has made the change itself. It is told only if it still has to get earlier news of
  /// this allocation.
  bool own = false;
  /// Whether the scheduler does not know the allocation yet.
  bool made = false;

  /// Adds later news of the same allocation.
  void merge(const AllocationNews& later);
};

/// Scheduled drains with their targets, ordered by their begins first.
using ScheduledDrains = std::map<Drain, text::IdSet>;

struct Delta {
  /// Targets that become available and unavailable: disjoint, transitions only.
  text::IdSet up;
  text::IdSet down;
  /// Targets that left for good; they are also in `down`.
  text::IdSet shrink;
  rset::ResourceSet::Properties property_add;
  rset::ResourceSet::Properties property_remove;
  std::optional<WallTime> expiration;
  /// The following members are for schedulers with extensions, and restricted() leaves them out: causes of
  /// `down`, which are found when a response is made, and which merge() leaves out too; news of allocations;
  /// and all scheduled drains if they have changed.
  DownCauses cause = {};
  std::map<AllocationName, AllocationNews> allocations = {};
  std::optional<ScheduledDrains> scheduled = std::nullopt;

  [[nodiscard]] bool empty() const noexcept;

  /// Adds a later delta and keeps only the net change: a target that went down and up again is in neither
  /// set, a property added and removed again in neither map.
  void merge(const Delta& later);

  /// Returns the part of the change that concerns these targets. The expiration concerns every target.
  [[nodiscard]] Delta restricted(const text::IdSet& targets) const;
};

/// Merges a later change of properties into `same`, the net change in its direction. A property that is in
/// `opposite`, the net change in the other direction, is removed there instead: the two changes cancel.
void merge_properties(const rset::ResourceSet::Properties& later, rset::ResourceSet::Properties& same,
                      rset::ResourceSet::Properties& opposite);

}  // namespace resourced::module

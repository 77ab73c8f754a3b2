// The states of all targets at one point of the log, for questions about the past. A snapshot and the events
// after it give the state at any later time, until a start or a definition: the module's own snapshot follows
// these, as the log does not have all that they change.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/module/module.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::module {

struct Snapshot {
  rset::ResourceSet inventory;
  /// By ranks of the inventory, like the other sets.
  TargetStates states;
  text::IdSet exclude;
  /// The targets of each allocation, by its id.
  std::map<std::string, text::IdSet, std::less<>> allocations;
  /// The hosts of targets that left for good.
  text::Hostlist shrunk;
  /// The resources are those of a Flux instance, whose states are not kept here: everything else is empty.
  bool of_brokers = false;

  [[nodiscard]] text::IdSet allocated() const;
};

/// The present state of the module, as a copy.
[[nodiscard]] Snapshot snapshot_of(const Module& module);

/// Applies the next event of the log, by fold_inventory() and fold_states(); of allocations it keeps the
/// targets alone, for which the ledger would need all their resources. A definition needs its inventory.
/// After a start or a definition without a snapshot, targets are found again by their hosts, and what is
/// excluded stays so.
void fold(const Event& event, Snapshot& snapshot);

}  // namespace resourced::module

// States of targets that are known by their names alone. They are set aside when targets leave for good, or
// another inventory replaces theirs, since ranks may mean other targets then, and come back with the targets.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/module/event.hpp"
#include "core/module/target_names.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::module {

class DrainTable;
struct State;

/// A drain of a target that is known by its name alone.
struct RecordedDrain : Drain {
  TargetName target;
  bool operator==(const RecordedDrain&) const = default;
};

/// A property that differs from the configuration: added at run time, or taken away.
struct RecordedProperty {
  std::string name;
  TargetName target;
  bool present = true;
};

/// States of targets that are not in the inventory, or not in the instance: they wait for their hosts, or for
/// the return of targets that left for good.
struct AbsentStates {
  std::vector<RecordedDrain> drains = {};
  std::vector<RecordedDrain> scheduled = {};
  std::vector<RecordedProperty> properties = {};
  /// Targets that left for good, and must not come back with their hosts.
  std::vector<TargetName> shrunk = {};

  /// Returns the hosts that drains, scheduled drains and properties wait for.
  [[nodiscard]] std::set<std::string, std::less<>> awaited() const;
  void add(AbsentStates more);
};

/// Adds the entries that a table has of these targets to `rows`.
void set_aside(const State& state, const DrainTable& table, const text::IdSet& targets,
               std::vector<RecordedDrain>& rows);

/// Returns the states of these targets by name.
[[nodiscard]] AbsentStates states_of(const State& state, const text::IdSet& lacking);
/// Returns the states of these targets under names that no target of `next` has: if targets share a host,
/// `next` may give the name of one that leaves to another one.
[[nodiscard]] AbsentStates states_of(const State& state, const text::IdSet& lacking,
                                     const rset::ResourceSet& next);

/// Applies the states that waited for targets which are present now. Targets of `undrained` get no drains. If
/// targets share a host, the one that comes with a name may be another one, with a drain of its own.
void take_back(State& state, const text::IdSet& undrained);

}  // namespace resourced::module

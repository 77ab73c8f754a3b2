// Divides the inventory between schedulers: finds the targets of each configured partition, which are named
// or given by a constraint that properties decide.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/constraint/constraint.hpp"
#include "core/module/acquisition.hpp"
#include "core/module/event.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::module {

struct PartitionRule {
  std::string name;
  /// Fixed targets; if unset, the constraint decides.
  std::optional<text::IdSet> targets;
  constraint::Constraint constraint;
};

/// Returns the partitions of the present inventory. Throws Error EINVAL that names two partitions and the
/// ranks that both would have.
[[nodiscard]] std::vector<Partition> divide_inventory(const std::vector<PartitionRule>& rules,
                                                      const rset::ResourceSet& inventory);

/// Indices of the rules whose constraint names a property, by the name of the property.
using RulesByProperty = std::map<std::string, std::vector<std::size_t>, std::less<>>;
[[nodiscard]] RulesByProperty rules_by_property(const std::vector<PartitionRule>& rules);

/// Returns the partitions of `present` whose targets a change of the inventory in place changes, with their
/// new targets. Applies only rules that name one of the properties that change, and only to its targets.
/// Throws Error EINVAL as divide_inventory() does.
[[nodiscard]] Acquisition::PartitionChanges partition_changes(const std::vector<PartitionRule>& rules,
                                                              const RulesByProperty& by_property,
                                                              const Acquisition& present,
                                                              const rset::ResourceSet& inventory,
                                                              const EventBody& update);

/// Returns the partitions at a start, where recorded properties may divide the inventory as well as
/// configured ones. Throws Error EINVAL as divide_inventory() does; if the configuration alone would not
/// overlap, the text names the properties that were changed at run time, and the commands that undo this.
[[nodiscard]] std::vector<Partition> divide_at_start(const std::vector<PartitionRule>& rules,
                                                     const DefineEvent& start);

}  // namespace resourced::module

// Dividing the inventory between schedulers: which targets each configured partition has, by name or by a
// constraint that properties decide.
#pragma once

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
  /// Fixed targets; without them the constraint decides.
  std::optional<text::IdSet> targets;
  constraint::Constraint constraint;
};

/// The partitions of an inventory as it is now. Throws Error EINVAL that names two partitions and the ranks
/// that both would have.
[[nodiscard]] std::vector<Partition> divide_inventory(const std::vector<PartitionRule>& rules,
                                                      const rset::ResourceSet& inventory);

/// The partitions of a start, where properties that were recorded may divide the inventory as well as those
/// that are configured. Throws Error EINVAL as divide_inventory() does; where the configuration alone would
/// not overlap, it names the properties that were changed at run time and tells how to undo that.
[[nodiscard]] std::vector<Partition> divide_at_start(const std::vector<PartitionRule>& rules,
                                                     const DefineEvent& start);

}  // namespace resourced::module

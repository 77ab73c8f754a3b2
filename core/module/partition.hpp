// Dividing the inventory between schedulers: which targets each configured partition has, by name or by a
// constraint that properties decide.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/module/acquisition.hpp"
#include "core/request/constraint.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced {

struct PartitionRule {
  std::string name;
  /// Fixed targets; without them the constraint decides.
  std::optional<IdSet> targets;
  Constraint constraint;
};

/// The partitions of an inventory as it is now. Throws Error EINVAL that names two partitions and the ranks
/// that both would have.
[[nodiscard]] std::vector<Partition> divide_inventory(const std::vector<PartitionRule>& rules,
                                                      const ResourceSet& inventory);

}  // namespace resourced

#include "core/module/partition.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced {

std::vector<Partition> divide_inventory(const std::vector<PartitionRule>& rules,
                                        const ResourceSet& inventory) {
  std::vector<Partition> partitions;
  for (const PartitionRule& rule : rules) {
    IdSet targets = rule.targets ? *rule.targets & inventory.ranks() : rule.constraint.match(inventory);
    for (const Partition& other : partitions) {
      if (!other.targets.intersects(targets)) continue;
      throw Error(EINVAL, fmt::format("partitions {} and {} overlap: rank {} would be in both", other.name,
                                      rule.name, (other.targets & targets).encode()));
    }
    partitions.push_back({rule.name, std::move(targets)});
  }
  return partitions;
}

}  // namespace resourced

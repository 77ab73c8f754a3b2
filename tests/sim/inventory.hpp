// The resources of the simulated daemons.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/module/partition.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "reference.hpp"

namespace resourced::sim {

/// An R with these hosts by rank, each with four cores.
[[nodiscard]] std::shared_ptr<const rset::ResourceSet> resources_of(const std::vector<std::string>& hosts);
[[nodiscard]] text::IdSet idset_of(const Reference::Ranks& ranks);
/// The lower half of so many ranks is the partition `left`.
[[nodiscard]] std::vector<module::PartitionRule> left_of(std::size_t count);

}  // namespace resourced::sim

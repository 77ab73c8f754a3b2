// The nodes that a valid configuration names, for people: the nodes of partitions and
// queues, and remarks on values that are probably not meant.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::config {

/// The targets of a partition; targets that the inventory lacks are passed over.
[[nodiscard]] text::IdSet targets_of(const Partition& partition, const rset::ResourceSet& resources);

/// The targets of each queue of [queues] that has hosts, properties, or such a parent (RFC 33), and of the
/// others all targets; in the order of their names.
[[nodiscard]] std::vector<std::pair<std::string, text::IdSet>> targets_of_queues(
    const Config& config, const rset::ResourceSet& resources);

/// A line `FILE:LINE: KEY: ...` for each value that is valid and probably a mistake: partitions and queues
/// without nodes, properties that no node has, a number of cores that stands where their numbers belong, and
/// ranks that are also names of other hosts, and accounts that do not exist.
[[nodiscard]] std::vector<std::string> remarks(const Config& config, const rset::ResourceSet& resources);

}  // namespace resourced::config

// The nodes that a valid configuration names, for people: the nodes of partitions and queues, and remarks on
// values that are probably mistakes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::config {

/// Returns the targets of a partition; those that the inventory lacks are ignored.
[[nodiscard]] text::IdSet targets_of(const Partition& partition, const rset::ResourceSet& resources);

/// Returns the targets of each queue of [queues], in the order of their names: those of its hosts or
/// properties, or of its parent's (RFC 33), otherwise all targets.
[[nodiscard]] std::vector<std::pair<std::string, text::IdSet>> targets_of_queues(
    const Config& config, const rset::ResourceSet& resources);

/// Returns a line `FILE:LINE: KEY: ...` for each value that is valid and probably a mistake: partitions and
/// queues without nodes, properties that no node has, a number of cores where their ids are expected, ranks
/// that are also names of other hosts, accounts that do not exist, and hosts of a key with other roles than
/// that of an agent.
[[nodiscard]] std::vector<std::string> remarks(const Config& config, const rset::ResourceSet& resources);

}  // namespace resourced::config

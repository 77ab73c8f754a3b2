// Inputs for rows: sets, lists and documents of a given size, the same in every run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::bench {

/// Returns the ids 0, 2, 4... below `span`.
[[nodiscard]] text::IdSet every_other(std::uint64_t span);
/// Returns about half of the ids below `span`.
[[nodiscard]] text::IdSet random_half(std::uint64_t span);
/// Returns `count` ids anywhere below `span`.
[[nodiscard]] text::IdSet scattered(std::uint64_t count, std::uint64_t span);

/// Returns `host0,host1,...`, in order or shuffled.
[[nodiscard]] std::string single_names(std::uint64_t count, bool shuffled);

/// Returns an R of `size` equal nodes: one entry of R_lite, and one run of hosts.
[[nodiscard]] std::string equal_r(std::uint64_t size);
/// Returns an R with an entry for each rank, of 64 kinds of nodes, and hosts whose numbers are in no order.
[[nodiscard]] std::string mixed_r(std::uint64_t size);
/// Returns the number of characters of the host names of mixed_r().
[[nodiscard]] std::uint64_t mixed_names(std::uint64_t size);

}  // namespace resourced::bench

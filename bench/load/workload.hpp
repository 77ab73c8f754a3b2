// Inputs for rows: sets, lists and documents of a given size, the same in every run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::bench {

/// 0, 2, 4... below `span`.
[[nodiscard]] text::IdSet every_other(std::uint64_t span);
/// About half of the ids below `span`.
[[nodiscard]] text::IdSet random_half(std::uint64_t span);
/// `count` ids anywhere below `span`.
[[nodiscard]] text::IdSet scattered(std::uint64_t count, std::uint64_t span);

/// `host0,host1,...`, in order or not.
[[nodiscard]] std::string single_names(std::uint64_t count, bool shuffled);

/// An R of `size` equal nodes: one entry of R_lite, and one run of hosts.
[[nodiscard]] std::string equal_r(std::uint64_t size);
/// An R with an entry for each rank, of 64 kinds of nodes, and hosts whose numbers are in no order.
[[nodiscard]] std::string mixed_r(std::uint64_t size);
/// The characters of the host names of mixed_r().
[[nodiscard]] std::uint64_t mixed_names(std::uint64_t size);

}  // namespace resourced::bench

// Takes the samples of a row. The points of a row and their limits take turns, so that a disturbance of the
// machine meets them all.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "row.hpp"
#include "samples.hpp"

namespace resourced::bench {

/// How much is measured.
struct Effort {
  bool quick = false;
  int turns = 200;
  /// Seconds after which a row takes no further turn, once it has its least.
  double patience = 4;
  int least_turns = 3;
};

struct Measured {
  std::uint64_t size = 0;
  Samples samples;
  Samples limits;
};

/// One entry for each point that the effort includes.
[[nodiscard]] std::vector<Measured> measure(const Row& row, const Effort& effort);

}  // namespace resourced::bench

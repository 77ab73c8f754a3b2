#include "bench/measure/measure.hpp"

#include <algorithm>

#include "bench/measure/timing.hpp"

namespace resourced::bench {

namespace {

/// Whether a check of every change leaves a point out, because it takes too long: smaller ones show the
/// growth.
bool takes_long(const Point& point) { return point.only_full || point.size > 200'000; }

}  // namespace

std::vector<Measured> measure(const Row& row, const Effort& effort) {
  std::vector<Measured> measured;
  std::vector<Sampler> samplers;
  std::vector<Sampler> limits;
  for (const Point& point : row.points) {
    if (effort.quick && takes_long(point)) continue;
    measured.push_back({point.size, {}, {}, {}});
    samplers.push_back(point.prepare());
    limits.push_back(point.limit);
    // Discard the first sample: caches are cold, and the daemon encodes its answers for the first time.
    if (row.most_turns > 1) (void)samplers.back()();
  }
  const int turns = std::min(effort.turns, row.most_turns);
  const int least = std::min(effort.least_turns, turns);
  const auto start = Clock::now();
  for (int turn = 0; turn < turns && (turn < least || seconds_since(start) < effort.patience); ++turn) {
    for (std::size_t i = 0; i < samplers.size(); ++i) {
      const double sample = samplers[i]();
      measured[i].samples.add(sample);
      if (!limits[i]) continue;
      const double limit = limits[i]();
      measured[i].limits.add(limit);
      measured[i].ratios.add(sample / limit);
    }
  }
  return measured;
}

}  // namespace resourced::bench

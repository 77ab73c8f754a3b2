// The first response to a scheduler that acquires everything. The scheduler releases it between samples, so
// that each is a re-acquire of an inventory that has not changed.
#include <memory>

#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"

namespace resourced::bench {
namespace {

struct Acquiring {
  template <class... Nodes>
  explicit Acquiring(const Bench& bench, Nodes... nodes)
      : cluster(bench, nodes...), scheduler(cluster.uri()) {}

  double once() {
    std::uint32_t stream = 0;
    const double time = time_of([&] {
      stream = scheduler.open("resource.acquire");
      scheduler.expect();
    });
    scheduler.cancel("resource.acquire", stream);
    return time;
  }

  Cluster cluster;
  BusClient scheduler;
};

Row equal(const Bench& bench) {
  Row row{.name = "acquire to first response, equal nodes",
          .limit_name = "round trip",
          .growth_bar = growth::flat};
  for (const std::uint64_t size : {1'024, 16'384, 131'072, 1'048'576}) {
    row.points.push_back({.size = size,
                          .prepare = [&bench, size]() -> Sampler {
                            return [at = std::make_shared<Acquiring>(bench, size)] { return at->once(); };
                          },
                          .bar = 1 * ms,
                          .limit = bench.limits.round_trip()});
  }
  row.points[0].peer = 8.5 * ms;
  row.points[1].peer = 148 * ms;
  return row;
}

Row mixed(const Bench& bench) {
  Row row{.name = "acquire to first response, one R_lite entry a rank",
          .limit_name = "round trip",
          .growth_bar = growth::linear};
  for (const std::uint64_t size : {16'384, 131'072, 1'048'576}) {
    row.points.push_back({.size = size,
                          .prepare = [&bench, size]() -> Sampler {
                            return [at = std::make_shared<Acquiring>(bench, mixed_nodes, size)] {
                              return at->once();
                            };
                          },
                          .limit = bench.limits.round_trip(),
                          .only_full = size > 131'072});
  }
  return row;
}

}  // namespace

std::vector<Row> acquire_rows(const Bench& bench) { return {equal(bench), mixed(bench)}; }

}  // namespace resourced::bench

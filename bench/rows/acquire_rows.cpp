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

// A scheduler that has promised to send something every 5 s and stops, until the next one has the resources.
Row stopped(const Bench& bench) {
  Row row{.name = "a stopped scheduler with a lease of 5 s, until the next one has acquired",
          .most_turns = 1};
  row.points.push_back({.size = 16'384,
                        .prepare = [&bench]() -> Sampler {
                          return [at = std::make_shared<Acquiring>(bench, std::uint64_t{16'384})] {
                            BusClient stops(at->cluster.uri());
                            stops.open("resource.acquire", R"({"lease":5.0})");
                            stops.expect();
                            return time_of([&] {
                              at->scheduler.open("resource.acquire", R"({"wait":true})");
                              at->scheduler.expect();
                            });
                          };
                        },
                        .bar = 7.0,
                        .only_full = true});
  return row;
}

}  // namespace

std::vector<Row> acquire_rows(const Bench& bench) { return {equal(bench), mixed(bench), stopped(bench)}; }

}  // namespace resourced::bench

// The first response to a scheduler that acquires everything. The scheduler releases it between samples, so
// that each is a re-acquire of an inventory that has not changed.
#include <csignal>
#include <memory>

#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"
#include "harness/process.hpp"

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
                          .limit = bench.limits.round_trip()});
  }
  return row;
}

// The scheduler has promised to send something every 5 s, and its process is stopped by SIGSTOP. The time
// ends with the first response to the scheduler that waits for its resources.
Row stopped(const Bench& bench) {
  Row row{.name = "a stopped scheduler with a lease of 5 s, until the next one has acquired",
          .most_turns = 3};
  row.points.push_back({.size = 16'384,
                        .prepare = [&bench]() -> Sampler {
                          return [&bench, at = std::make_shared<Acquiring>(bench, std::uint64_t{16'384})] {
                            e2e::Process holder({bench.self, "--hold", at->cluster.uri()});
                            holder.expect_line();
                            holder.signal(SIGSTOP);
                            std::uint32_t stream = 0;
                            const double time = time_of([&] {
                              stream = at->scheduler.open("resource.acquire", R"({"wait":true})");
                              at->scheduler.expect();
                            });
                            at->scheduler.cancel("resource.acquire", stream);
                            return time;
                          };
                        },
                        .bar = 7.0,
                        .only_full = true});
  return row;
}

}  // namespace

std::vector<Row> acquire_rows(const Bench& bench) { return {equal(bench), mixed(bench), stopped(bench)}; }

}  // namespace resourced::bench

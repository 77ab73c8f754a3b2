// Rows of the time from the start of the process to READY=1, on the store of an earlier start.
#include <memory>

#include <fmt/format.h>

#include "bench/load/bus_client.hpp"
#include "bench/load/limits.hpp"
#include "bench/load/workload.hpp"
#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"

namespace resourced::bench {
namespace {

Sampler start_again(const std::shared_ptr<Cluster>& cluster) {
  return [cluster] {
    cluster->daemon().terminate();
    return time_of([&] { cluster->daemon().start(); });
  };
}

// The growth is linear, because the store has a row for the name of each host (known_host), and reads them
// all.
Row equal(const Bench& bench) {
  Row row{.name = "start to READY, equal nodes",
          .limit_name = "a process that ends at once",
          .growth_bar = growth::linear,
          .most_turns = 20};
  for (const std::uint64_t size : {1'024, 16'384, 131'072, 1'048'576}) {
    row.points.push_back(
        {.size = size,
         .prepare = [&bench, size] { return start_again(std::make_shared<Cluster>(bench, size)); },
         .limit = Limits::process()});
    Point& point = row.points.back();
    if (size == 16'384) point.bar = 60 * ms, point.peer = 1'165 * ms;
    if (size == 131'072) point.bar = 250 * ms;
  }
  return row;
}

Row mixed(const Bench& bench) {
  Row row{.name = "start to READY, R of one entry a rank",
          .limit_name = "a process that ends at once",
          .growth_bar = growth::linear,
          .most_turns = 10};
  for (const std::uint64_t size : {16'384, 131'072, 1'048'576}) {
    row.points.push_back(
        {.size = size,
         .prepare = [&bench,
                     size] { return start_again(std::make_shared<Cluster>(bench, mixed_nodes, size)); },
         .limit = Limits::process()});
  }
  return row;
}

// A start applies the events that the newest snapshot lacks: 4,096 at most, if no clean end wrote one.
Row after_kill(const Bench& bench) {
  constexpr std::uint64_t events = 4'000;
  Row row{.name = "start to READY after a kill, 4,000 drains after the snapshot",
          .limit_name = "the same after a clean end",
          .ratio_bar = 2,
          .growth_bar = growth::linear,
          .most_turns = 10};
  const auto drained = [&bench](std::uint64_t size) {
    const auto cluster = std::make_shared<Cluster>(bench, size);
    cluster->drain_each(events);
    return cluster;
  };
  for (const std::uint64_t size : {16'384, 1'048'576}) {
    const auto prepare = [drained, size]() -> Sampler {
      return [cluster = drained(size)] {
        BusClient(cluster->uri())
            .call("resource.undrain", fmt::format(R"({{"targets":"0-{}"}})", events - 1));
        cluster->drain_each(events);
        cluster->daemon().kill();
        return time_of([&] { cluster->daemon().start(); });
      };
    };
    row.points.push_back({.size = size,
                          .prepare = prepare,
                          .limit =
                              [drained, size, again = Sampler()]() mutable {
                                if (!again) again = start_again(drained(size));
                                return again();
                              },
                          .only_full = size > 16'384});
  }
  return row;
}

}  // namespace

std::vector<Row> start_rows(const Bench& bench) { return {equal(bench), mixed(bench), after_kill(bench)}; }

}  // namespace resourced::bench

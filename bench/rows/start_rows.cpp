// Rows of the time from the start of the process to READY=1, on the store of an earlier start.
#include <memory>

#include <fmt/format.h>

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

}  // namespace

std::vector<Row> start_rows(const Bench& bench) { return {equal(bench), mixed(bench)}; }

}  // namespace resourced::bench

// The resident memory of the daemon (VmRSS), measured once per point as it hardly varies.
#include <memory>

#include <fmt/format.h>

#include "bench/load/workload.hpp"
#include "bench/rows/rows.hpp"

namespace resourced::bench {
namespace {

constexpr std::uint64_t nodes = 16'384;

Row row_of(std::string name, std::string of, std::vector<Point> points, double growth = growth::none) {
  return {.name = std::move(name),
          .unit = Unit::bytes,
          .of = std::move(of),
          .growth_bar = growth,
          .most_turns = 1,
          .points = std::move(points)};
}

// The growth is linear: the store keeps the name of each host in memory, some 80 bytes.
Row at_rest(const Bench& bench) {
  std::vector<Point> points;
  for (const std::uint64_t size : {1'024, 16'384, 131'072, 1'048'576}) {
    points.push_back({.size = size, .prepare = [&bench, size]() -> Sampler {
                        return [at = std::make_shared<Cluster>(bench, size)] { return at->memory(); };
                      }});
    if (size == nodes) points.back().bar = 16 * mib, points.back().peer = 41 * mib;
  }
  return row_of("memory, equal nodes", "targets", std::move(points), growth::linear);
}

Row drained(const Bench& bench) {
  const auto prepare = [&bench]() -> Sampler {
    const auto cluster = std::make_shared<Cluster>(bench, nodes);
    cluster->drain_each(nodes / 2);
    return [cluster] { return cluster->memory(); };
  };
  return row_of("memory, 8,192 drained for different reasons", "targets",
                {{.size = nodes, .prepare = prepare, .bar = 24 * mib, .peer = 133 * mib}});
}

Row one_at_a_time(const Bench& bench) {
  std::vector<Point> points;
  for (const std::uint64_t events : {1'000, 10'000}) {
    const auto prepare = [&bench, events]() -> Sampler {
      const auto cluster = std::make_shared<Cluster>(bench, nodes);
      BusClient client(cluster->uri());
      for (std::uint64_t i = 0; i < events; ++i) {
        client.call("resource.drain", fmt::format(R"({{"targets":"{}","reason":"reason number {}"}})", i, i));
      }
      return [cluster] { return cluster->memory(); };
    };
    points.push_back({.size = events, .prepare = prepare, .only_full = events > 1'000});
  }
  points[1].bar = 40 * mib;
  points[1].peer = 1'150 * mib;
  return row_of("memory after drains one at a time", "events", std::move(points));
}

/// Measures memory beyond that of a daemon with one target and beyond the characters of the host names.
Row per_target(const Bench& bench) {
  std::vector<Point> points;
  for (const std::uint64_t size : {16'384, 131'072, 1'048'576}) {
    const auto prepare = [&bench, size]() -> Sampler {
      return [&bench, size] {
        const double base = Cluster(bench, 1).memory();
        const double names = static_cast<double>(mixed_names(size));
        return (Cluster(bench, mixed_nodes, size).memory() - base - names) / static_cast<double>(size);
      };
    };
    points.push_back({.size = size, .prepare = prepare, .bar = 256});
  }
  return row_of("memory a target beyond its name, one R_lite entry a rank", "targets", std::move(points));
}

}  // namespace

std::vector<Row> memory_rows(const Bench& bench) {
  return {at_rest(bench), drained(bench), one_at_a_time(bench), per_target(bench)};
}

}  // namespace resourced::bench

// Resource sets (RFC 20): parsed, encoded, built from configurations, and processed by resourcectl.
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "bench/load/limits.hpp"
#include "bench/load/workload.hpp"
#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"
#include "config/config.hpp"
#include "config/inventory.hpp"
#include "core/rset/resource_set.hpp"
#include "harness/process.hpp"
#include "temp_dir.hpp"

namespace resourced::bench {
namespace {

constexpr std::uint64_t sizes[] = {1'024, 16'384, 131'072, 1'048'576};

/// Bars and peers of 16,384 and 131,072 targets.
struct Held {
  double small_bar, large_bar, small_peer, large_peer;
};

void hold(Point& point, Held held) {
  if (point.size == 16'384) point.bar = held.small_bar, point.peer = held.small_peer;
  if (point.size == 131'072) point.bar = held.large_bar, point.peer = held.large_peer;
}

Row read(std::string name, std::string (*text_of)(std::uint64_t), Held held, double growth) {
  Row row{.name = std::move(name), .limit_name = "copy of the text", .growth_bar = growth};
  for (const std::uint64_t size : sizes) {
    row.points.push_back({.size = size,
                          .prepare =
                              [size, text_of] {
                                return repeated(
                                    [text = text_of(size)] { return rset::ResourceSet::parse(text); });
                              },
                          .limit = Limits::copy([size, text_of] { return text_of(size).size(); })});
    hold(row.points.back(), held);
  }
  return row;
}

Row write() {
  Row row{.name = "R of equal nodes: write", .growth_bar = growth::flat};
  for (const std::uint64_t size : sizes) {
    row.points.push_back({.size = size, .prepare = [size] {
                            return repeated(
                                [set = rset::ResourceSet::parse(equal_r(size))] { return set.encode(); });
                          }});
    hold(row.points.back(), {0.2 * ms, 0.2 * ms, 284 * ms, 2.3});
  }
  return row;
}

/// Returns one configuration entry per host, as sites write that name their hosts one by one.
std::string entries(std::uint64_t size) {
  std::string text;
  for (std::uint64_t i = 0; i < size; ++i) {
    fmt::format_to(std::back_inserter(text),
                   "[[resource.config]]\nhosts = \"node{}\"\ncores = \"0-{}\"\ngpus = \"0-3\"\n", i,
                   31 + i * 31 % 64);
  }
  return text;
}

Row configuration() {
  Row row{.name = "configuration of one entry a host: read", .growth_bar = growth::linear};
  for (const std::uint64_t size : {1'024, 16'384, 131'072}) {
    row.points.push_back({.size = size, .prepare = [size] {
                            const auto dir = std::make_shared<test::TempDir>();
                            const std::string file = dir->write("config.toml", entries(size));
                            return repeated(
                                [dir, file] { return config::load_inventory(config::load(file)); });
                          }});
    if (size == 16'384) row.points.back().bar = 40 * ms, row.points.back().peer = 600 * ms;
  }
  return row;
}

Row command() {
  Row row{.name = "command R encode, whole process",
          .limit_name = "a process that ends at once",
          .growth_bar = growth::flat,
          .most_turns = 50};
  for (const std::uint64_t size : sizes) {
    const std::vector<std::string> line{RESOURCED_BIN "/resourcectl",
                                        "R",
                                        "encode",
                                        "-r",
                                        fmt::format("0-{}", size - 1),
                                        "-c",
                                        "0-95",
                                        "-g",
                                        "0-3",
                                        "-H",
                                        fmt::format("node[0-{}]", size - 1)};
    row.points.push_back({.size = size,
                          .prepare = [line]() -> Sampler {
                            return [line] {
                              return time_of([&] {
                                const e2e::Outcome outcome = e2e::Process(line).finish();
                                if (outcome.status != 0) throw std::runtime_error(outcome.err);
                              });
                            };
                          },
                          .limit = Limits::process()});
    if (size == 131'072) row.points.back().bar = 20 * ms, row.points.back().peer = 3.5;
  }
  return row;
}

}  // namespace

std::vector<Row> resource_set_rows() {
  return {
      read("R of equal nodes: read", equal_r, {2 * ms, 2 * ms, 151 * ms, 1.25}, growth::flat),
      read("R of one entry a rank: read", mixed_r, {25 * ms, 200 * ms, 430 * ms, 9.6}, growth::linear),
      write(),
      configuration(),
      command(),
  };
}

}  // namespace resourced::bench

#include "bench/load/cluster.hpp"

#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>

#include "bench/load/workload.hpp"

namespace resourced::bench {
namespace {

const test::TempDir& prepared(const test::TempDir& dir,
                              const std::function<void(const test::TempDir&)>& prepare) {
  prepare(dir);
  return dir;
}

}  // namespace

std::string equal_nodes(std::uint64_t size) {
  return fmt::format("[[resource.config]]\nhosts = \"node[0-{}]\"\ncores = \"0-95\"\ngpus = \"0-3\"\n",
                     size - 1);
}

Cluster::Cluster(const Bench& bench, std::uint64_t size)
    : Cluster(bench, equal_nodes(size), [](const test::TempDir& /*dir*/) {}) {}

Cluster::Cluster(const Bench& bench, MixedNodes /*nodes*/, std::uint64_t size)
    : Cluster(bench, "[resource]\npath = \"R.json\"\n",
              [size](const test::TempDir& dir) { dir.write("R.json", mixed_r(size)); }) {}

Cluster::Cluster(const Bench& bench, const std::string& config,
                 const std::function<void(const test::TempDir&)>& prepare)
    : dir_(bench.directory), daemon_(prepared(dir_, prepare), {.config = config}) {}

void Cluster::drain_each(std::uint64_t count, std::uint64_t stride) {
  constexpr std::uint64_t in_flight = 256;
  BusClient client(uri());
  for (std::uint64_t i = 0; i < count + in_flight; ++i) {
    if (i >= in_flight) client.expect();
    if (i >= count) continue;
    client.send("resource.drain",
                fmt::format(R"({{"targets":"{}","reason":"reason number {}"}})", i * stride, i));
  }
}

double Cluster::memory() { return status_line("VmRSS:"); }
double Cluster::most_memory() { return status_line("VmHWM:"); }

double Cluster::status_line(const std::string& name) {
  std::ifstream status(fmt::format("/proc/{}/status", daemon_.process().pid()));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::strtod(line.c_str() + name.size(), nullptr) * 1024;
  }
  throw std::runtime_error(name + " is not known");
}

}  // namespace resourced::bench

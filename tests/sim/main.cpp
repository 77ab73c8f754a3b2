// sim [--seed S] [--steps N] [--runs R]: R runs with the seeds S, S+1, ..., and N steps in total.
// sim --cluster [--seed S] [--runs R] [--seconds T]: R clusters, each with T seconds of faults.
// A failure names the seed that reproduces it.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>

#include "cli/usage/parser.hpp"
#include "cluster.hpp"
#include "simulation.hpp"

namespace resourced::sim {
namespace {

struct Options {
  std::uint32_t seed = 1;
  std::uint64_t steps = 100'000;
  std::uint32_t runs = 50;
  double seconds = 20;
};

// Calls `run` with each seed; false if one fails.
template <class Run>
bool run_all(const Options& options, const std::string& again, Run run) {
  for (std::uint32_t seed = options.seed; seed < options.seed + options.runs; ++seed) {
    try {
      run(seed);
    } catch (const std::exception& error) {
      fmt::print(stderr, "seed {}: {}\n  again: sim --seed {} --runs 1 {}\n", seed, error.what(), seed,
                 again);
      return false;
    }
  }
  return true;
}

bool run_daemons(const Options& options) {
  Simulation::Counts all;
  const std::uint64_t steps = options.steps / options.runs;
  if (!run_all(options, fmt::format("--steps {}", steps), [&](std::uint32_t seed) {
        Simulation simulation(seed);
        simulation.run(steps);
        const Simulation::Counts& counts = simulation.counts();
        all.events += counts.events;
        all.crashes += counts.crashes;
        all.responses += counts.responses;
        all.deltas += counts.deltas;
        all.ledger += counts.ledger;
        all.pages += counts.pages;
        all.large += counts.large;
        all.bounded += counts.bounded;
        all.leases += counts.leases;
        all.expired += counts.expired;
        all.rolled += counts.rolled;
        all.returned += counts.returned;
      }))
    return false;
  fmt::print(
      "{} steps in {} runs: {} events, {} crashes, {} responses, {} changes for schedulers, {} of the "
      "ledger, {} more pages, {} requests read beside the loop, {} beyond a bound, {} leases over, {} "
      "allocations expired, {} rolling works with {} nodes returned\n",
      options.steps, options.runs, all.events, all.crashes, all.responses, all.deltas, all.ledger, all.pages,
      all.large, all.bounded, all.leases, all.expired, all.rolled, all.returned);
  return true;
}

bool run_clusters(const Options& options) {
  ClusterSimulation::Counts all;
  if (!run_all(options, fmt::format("--cluster --seconds {}", options.seconds), [&](std::uint32_t seed) {
        ClusterSimulation simulation(seed);
        simulation.run(Seconds(options.seconds));
        const ClusterSimulation::Counts counts = simulation.counts();
        all.events += counts.events;
        all.answers += counts.answers;
        all.deltas += counts.deltas;
        all.pictures += counts.pictures;
        all.takeovers += counts.takeovers;
      }))
    return false;
  fmt::print(
      "{} clusters: {} times a daemon led, {} events, {} answered changes, {} changes for schedulers, {} "
      "answers with the status\n",
      options.runs, all.takeovers, all.events, all.answers, all.deltas, all.pictures);
  return true;
}

}  // namespace
}  // namespace resourced::sim

int main(int argc, char** argv) {
  resourced::sim::Options options;
  bool is_cluster = false;
  resourced::cli::usage::Command app(
      "Simulates the daemon, or a cluster, with disks, clocks, networks and clients from a seed.");
  app.add_option("--seed", options.seed, "of the first run");
  app.add_option("--steps", options.steps, "of all runs together");
  app.add_option("--runs", options.runs, "how many")->positive();
  app.add_flag("--cluster", is_cluster, "clusters");
  app.add_option("--seconds", options.seconds, "with faults in the run of a cluster");
  if (const auto status = resourced::cli::usage::parse_or_print(app, argc, argv)) return *status;
  return (is_cluster ? run_clusters(options) : run_daemons(options)) ? 0 : 1;
}

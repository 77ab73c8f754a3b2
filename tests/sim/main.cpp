// sim [--seed S] [--steps N] [--runs R]: R runs with the seeds S, S+1, ..., and N steps in total. A failure
// names the seed that reproduces it.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "simulation.hpp"

int main(int argc, char** argv) {
  std::uint32_t seed = 1;
  std::uint64_t steps = 100'000;
  std::uint32_t runs = 50;
  CLI::App app("Simulates the daemon, its disk, its clock and its clients from a seed.");
  app.add_option("--seed", seed, "of the first run");
  app.add_option("--steps", steps, "of all runs together");
  app.add_option("--runs", runs, "how many")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  resourced::sim::Simulation::Counts all;
  for (std::uint32_t run = 0; run < runs; ++run) {
    try {
      resourced::sim::Simulation simulation(seed + run);
      simulation.run(steps / runs);
      all.events += simulation.counts().events;
      all.crashes += simulation.counts().crashes;
      all.responses += simulation.counts().responses;
      all.deltas += simulation.counts().deltas;
      all.ledger += simulation.counts().ledger;
      all.rolled += simulation.counts().rolled;
      all.returned += simulation.counts().returned;
    } catch (const std::exception& error) {
      fmt::print(stderr, "seed {}: {}\n  again: sim --seed {} --runs 1 --steps {}\n", seed + run,
                 error.what(), seed + run, steps / runs);
      return 1;
    }
  }
  fmt::print(
      "{} steps in {} runs: {} events, {} crashes, {} responses, {} changes for schedulers, {} of the "
      "ledger, {} rolling works with {} nodes returned\n",
      steps, runs, all.events, all.crashes, all.responses, all.deltas, all.ledger, all.rolled, all.returned);
  return 0;
}

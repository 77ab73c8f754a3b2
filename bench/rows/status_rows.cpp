// The most frequent queries of operators and schedulers, answered from the cache, and encoded again after a
// change.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/load/limits.hpp"
#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"
#include "harness/process.hpp"

namespace resourced::bench {
namespace {

constexpr const char* status = "resource.status";
constexpr const char* sched_status = "resource.sched-status";

/// A cluster with `drained` targets drained, `stride` apart, each for a different reason.
class Asked {
 public:
  Asked(const Bench& bench, std::uint64_t size, std::uint64_t drained, std::uint64_t stride = 1)
      : last_(size - 1), cluster_(bench, size), client_(cluster_.uri()) {
    cluster_.drain_each(drained, stride);
  }

  double ask(const char* topic, const char* payload = "") {
    return time_of([&] { client_.call(topic, payload); });
  }
  static void wait(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

  /// Returns the time of the first answer after a change; the change is not measured.
  double ask_first(const char* topic) {
    const auto change = [&](const char* what) {
      client_.call(what, fmt::format(R"({{"targets":"{}"}})", last_));
    };
    change("resource.drain");
    change("resource.undrain");
    return ask(topic);
  }

  double preview() {
    const std::vector<std::string> command{
        RESOURCED_BIN "/resourcectl", "--uri", cluster_.uri(), "drain", "-f", "--dry-run", "all"};
    return time_of([&] {
      if (e2e::Process(command).finish().status != 0) throw std::runtime_error("resourcectl drain failed");
    });
  }

  double ask_at_once(const char* topic, int count) {
    return time_of([&] {
      for (int i = 0; i < count; ++i) client_.send(topic);
      for (int i = 0; i < count; ++i) client_.expect();
    });
  }

 private:
  std::uint64_t last_;
  Cluster cluster_;
  BusClient client_;
};

/// Makes a point for the time of `work` with `drained` of `size` targets drained.
template <class Work>
Point point(const Bench& bench, std::uint64_t size, std::uint64_t drained, Work work, double bar = 0,
            double peer = 0, std::uint64_t stride = 1) {
  return {.size = size,
          .prepare = [&bench, size, drained, stride, work]() -> Sampler {
            return [at = std::make_shared<Asked>(bench, size, drained, stride), work] { return work(*at); };
          },
          .bar = bar,
          .peer = peer,
          .limit = bench.limits.round_trip()};
}

Row none_drained(const Bench& bench) {
  const auto work = [](Asked& at) { return at.ask(status); };
  return {.name = "resource.status, none drained",
          .limit_name = "round trip",
          .growth_bar = growth::flat,
          .points = {point(bench, 1'024, 0, work, 0.2 * ms, 0.25 * ms),
                     point(bench, 16'384, 0, work, 0.2 * ms, 3 * ms),
                     point(bench, 131'072, 0, work, 0.2 * ms), point(bench, 1'048'576, 0, work, 0.2 * ms)}};
}

Row many_drained(const Bench& bench, const char* name, double (*work)(Asked&), double bar) {
  return {.name = name,
          .limit_name = "round trip",
          .growth_bar = growth::flat,
          .points = {point(bench, 16'384, 8'192, work, bar, 97 * ms), point(bench, 131'072, 8'192, work),
                     point(bench, 1'048'576, 8'192, work)}};
}

Row outstanding(const Bench& bench) {
  const auto work = [](Asked& at) { return at.ask_at_once(status, 100); };
  return {.name = "100 outstanding resource.status, none drained",
          .limit_name = "round trip",
          .growth_bar = growth::flat,
          .points = {point(bench, 1'024, 0, work, 10 * ms, 15 * ms),
                     point(bench, 16'384, 0, work, 10 * ms, 294 * ms), point(bench, 131'072, 0, work),
                     point(bench, 1'048'576, 0, work)}};
}

Row outstanding_drained(const Bench& bench) {
  const auto work = [](Asked& at) { return at.ask_at_once(status, 100); };
  return {.name = "100 outstanding resource.status, half drained for different reasons",
          .limit_name = "round trip",
          .growth_bar = growth::linear,
          .points = {point(bench, 1'024, 512, work, 20 * ms, 151 * ms),
                     point(bench, 16'384, 8'192, work, 60 * ms, 9.3)}};
}

/// Measures with half of the targets drained: every other one.
Row half_drained(const Bench& bench) {
  const auto work = [](Asked& at) { return at.ask_first(sched_status); };
  return {.name = "resource.sched-status, first, every other target drained",
          .limit_name = "round trip",
          .growth_bar = growth::linear,
          .points = {point(bench, 1'024, 512, work, 0, 0, 2),
                     point(bench, 16'384, 8'192, work, 10 * ms, 655 * ms, 2),
                     point(bench, 131'072, 65'536, work, 0, 0, 2)}};
}

Row sched(const Bench& bench, const char* name, double (*work)(Asked&), double bar, double peer) {
  return {.name = name,
          .limit_name = "round trip",
          .growth_bar = growth::flat,
          .points = {point(bench, 1'024, 0, work), point(bench, 16'384, 0, work, bar, peer),
                     point(bench, 131'072, 0, work), point(bench, 1'048'576, 0, work)}};
}

/// Measures `drain --dry-run` of an operator.
Row previewed(const Bench& bench) {
  const auto work = [](Asked& at) { return at.preview(); };
  return {.name = "resourcectl drain --dry-run all, each drained for a reason of its own",
          .growth_bar = growth::linear,
          .most_turns = 10,
          .points = {point(bench, 512, 512, work), point(bench, 4'096, 4'096, work),
                     point(bench, 32'768, 32'768, work)}};
}

Row metrics_of_nodes(const Bench& bench) {
  const auto work = [](Asked& at) {
    // Wait, because the daemon keeps answers for a second.
    at.wait(1.1);
    return at.ask("resource.metrics", R"({"nodes":true})");
  };
  return {.name = "resource.metrics with each node",
          .growth_bar = growth::linear,
          .most_turns = 5,
          .points = {point(bench, 1'024, 0, work), point(bench, 16'384, 0, work),
                     point(bench, 131'072, 0, work)}};
}

/// Measures connections that all query at the same time, with 8,192 of 16,384 targets drained for different
/// reasons.
Row callers(const Bench& bench, const char* name, const char* topic) {
  static constexpr std::uint64_t size = 16'384;
  static constexpr std::uint64_t drained = 8'192;
  Row row{.name = name, .of = "callers", .growth_bar = growth::linear, .most_turns = 50};
  for (const std::uint64_t count : {100, 1'000}) {
    const auto prepare = [&bench, topic, count]() -> Sampler {
      const auto cluster = std::make_shared<Cluster>(bench, size);
      cluster->drain_each(drained);
      const auto clients = std::make_shared<std::vector<std::unique_ptr<BusClient>>>();
      for (std::uint64_t i = 0; i < count; ++i)
        clients->push_back(std::make_unique<BusClient>(cluster->uri()));
      return [cluster, clients, topic] {
        return time_of([&] {
          for (const auto& client : *clients) client->send(topic);
          for (const auto& client : *clients) client->expect();
        });
      };
    };
    row.points.push_back({.size = count, .prepare = prepare, .bar = static_cast<double>(count) * 0.6 * ms});
  }
  return row;
}

}  // namespace

std::vector<Row> status_rows(const Bench& bench) {
  return {
      none_drained(bench),
      many_drained(
          bench, "resource.status, 8,192 drained for different reasons, first",
          [](Asked& at) { return at.ask_first(status); }, 5 * ms),
      many_drained(
          bench, "resource.status, 8,192 drained for different reasons, repeated",
          [](Asked& at) { return at.ask(status); }, 1 * ms),
      outstanding(bench),
      outstanding_drained(bench),
      sched(
          bench, "resource.sched-status, first", [](Asked& at) { return at.ask_first(sched_status); }, 3 * ms,
          391 * ms),
      sched(
          bench, "resource.sched-status, cached", [](Asked& at) { return at.ask(sched_status); }, 0.3 * ms,
          6 * ms),
      half_drained(bench),
      previewed(bench),
      metrics_of_nodes(bench),
      callers(bench, "callers of resource.status at once, 8,192 distinct drains", status),
      callers(bench, "callers of resource.sched-status at once, 8,192 distinct drains", sched_status),
  };
}

}  // namespace resourced::bench

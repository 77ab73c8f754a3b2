// The ledger of allocations: the rate of alloc and free, the cost of large requests and of a start with many
// allocations, and the first response to a scheduler that takes over many allocations.
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "bench/load/workload.hpp"
#include "bench/measure/measure.hpp"
#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"
#include "harness/process.hpp"

namespace resourced::bench {
namespace {

constexpr std::uint64_t targets = 16'384;

/// A scheduler that holds everything, and `present` allocations of one core each, on targets in turn.
class Ledger {
 public:
  Ledger(const Bench& bench, std::uint64_t present) : cluster_(bench, targets), scheduler_(cluster_.uri()) {
    acquire();
    std::vector<std::string> requests;
    for (std::uint64_t i = 0; i < present; ++i) requests.push_back(request("held", i));
    send_all("resource.alloc", requests);
  }

  /// Returns the time per alloc or free, in turns, of one core on a target.
  double change_many(std::uint64_t count) {
    std::vector<std::string> allocs;
    std::vector<std::string> frees;
    for (std::uint64_t i = 0; i < count; ++i) {
      // Use the last cores of the targets, which are never allocated.
      const std::uint64_t rank = 7919 * ++next_ % targets;
      allocs.push_back(fmt::format(R"({{"id":"j{}","R":{}}})", next_, r_of(rank, 95)));
      frees.push_back(fmt::format(R"({{"id":"j{}"}})", next_));
    }
    return time_of([&] {
             send_all("resource.alloc", allocs);
             send_all("resource.free", frees);
           }) /
           static_cast<double>(2 * count);
  }

  /// Returns the time of one alloc of a core on each of `nodes` targets, of which no two are neighbours.
  double change_scattered(std::uint64_t nodes) {
    const std::string ranks = every_other(2 * nodes).encode();
    const std::string alloc =
        fmt::format(R"({{"id":"spread","R":{}}})", r_of(ranks, fmt::format("node[{}]", ranks), 94));
    const double time = time_of([&] { scheduler_.call("resource.alloc", alloc); });
    free_all(R"({"id":"spread"})");
    return time;
  }

  /// Returns the median time of several allocs of a core on one target.
  double change_one() {
    constexpr int allocs = 25;
    Samples times;
    for (int i = 0; i < allocs; ++i) times.add(change_scattered(1));
    return times.median();
  }

  /// Returns the longest time for which the loop of the daemon does nothing else, of an alloc of a core on
  /// each of `nodes` targets.
  double hold_of_scattered(std::uint64_t nodes) {
    scheduler_.call("resource.stats-clear");
    (void)change_scattered(nodes);
    const auto stats = nlohmann::json::parse(scheduler_.call("resource.stats-get").payload);
    return stats.at("longest-hold").at("ms").get<double>() * ms;
  }

  /// Returns the time of `count` allocs of a core, in one request or in one each.
  double alloc_many(std::uint64_t count, bool in_one) {
    std::vector<std::string> allocs;
    std::string frees;
    for (std::uint64_t i = 0; i < count; ++i) {
      allocs.push_back(fmt::format(R"({{"id":"m{}","R":{}}})", i, r_of(i, 93)));
      frees += fmt::format(R"({}{{"id":"m{}"}})", i == 0 ? "" : ",", i);
    }
    if (in_one) allocs = {fmt::format(R"({{"allocations":[{}]}})", fmt::join(allocs, ","))};
    const double time = time_of([&] { send_all("resource.alloc", allocs); });
    free_all(fmt::format(R"({{"free":[{}]}})", frees));
    return time;
  }

  double restart() {
    cluster_.daemon().terminate();
    return time_of([&] { cluster_.daemon().start(); });
  }

  /// Requests the allocations on one target, as one page.
  double list_one() {
    return time_of([&] { scheduler_.call("resource.allocations", R"({"targets":"7919"})"); });
  }
  double list_all() {
    const std::vector<std::string> command{RESOURCED_BIN "/resourcectl", "--uri", cluster_.uri(),
                                           "allocations"};
    return time_of([&] {
      if (e2e::Process(command).finish().status != 0)
        throw std::runtime_error("resourcectl allocations failed");
    });
  }

  double acquire_again() {
    scheduler_.cancel("resource.acquire", stream_);
    return time_of([&] { acquire(); });
  }

 private:
  /// Frees, and waits until the loop has done what follows the answer, so that it is no part of the next
  /// sample.
  void free_all(const std::string& payload) {
    scheduler_.call("resource.free", payload);
    scheduler_.call("resource.ping");
  }

  void acquire() {
    stream_ = scheduler_.open("resource.acquire", R"({"allocations":true})");
    scheduler_.expect();
  }

  static std::string r_of(std::string_view ranks, std::string_view hosts, std::uint64_t core) {
    return fmt::format(R"({{"version":1,"execution":{{"R_lite":[{{"rank":"{}","children":{{"core":"{}"}}}}],)"
                       R"("nodelist":["{}"],"starttime":0.0,"expiration":0.0}}}})",
                       ranks, core, hosts);
  }
  static std::string r_of(std::uint64_t rank, std::uint64_t core) {
    return r_of(std::to_string(rank), fmt::format("node{}", rank), core);
  }
  static std::string request(const char* name, std::uint64_t number) {
    return fmt::format(R"({{"id":"{}{}","R":{}}})", name, number, r_of(number % targets, number / targets));
  }

  void send_all(const char* topic, const std::vector<std::string>& requests) {
    constexpr std::size_t in_flight = 256;
    for (std::size_t i = 0; i < requests.size() + in_flight; ++i) {
      if (i >= in_flight && i - in_flight < requests.size()) scheduler_.expect();
      if (i < requests.size()) scheduler_.send(topic, requests[i]);
    }
  }

  Cluster cluster_;
  BusClient scheduler_;
  std::uint32_t stream_ = 0;
  std::uint64_t next_ = 0;
};

template <class Work>
Row row_of(const Bench& bench, Row row, double bar, Work work) {
  for (const std::uint64_t present : {1'000, 10'000, 100'000}) {
    row.points.push_back({.size = present,
                          .prepare = [&bench, present, work]() -> Sampler {
                            return
                                [at = std::make_shared<Ledger>(bench, present), work] { return work(*at); };
                          },
                          .bar = bar,
                          .only_full = present > 10'000});
  }
  return row;
}

/// Makes a ledger without allocations when it is first needed.
class Empty {
 public:
  explicit Empty(const Bench& bench) : bench_(bench) {}
  Ledger& operator*() {
    if (!ledger_) ledger_.emplace(bench_, 0);
    return *ledger_;
  }

 private:
  Bench bench_;
  std::optional<Ledger> ledger_;
};

/// Returns a point of a row that compares two kinds of work on the same ledger without allocations.
template <class Work, class Limit>
Point compared(const Bench& bench, std::uint64_t size, Work work, Limit limit) {
  const auto ledger = std::make_shared<Empty>(bench);
  return {.size = size,
          .prepare = [ledger, work]() -> Sampler { return [ledger, work] { return work(**ledger); }; },
          .limit = [ledger, limit] { return limit(**ledger); }};
}

/// The state of a daemon in memory, to measure without the share of the disk.
Bench in_memory(const Bench& bench) { return {"/dev/shm", bench.self, bench.limits}; }

constexpr std::uint64_t scattered_nodes = 8'192;

Row scattered(const Bench& bench) {
  Row row{.name = "alloc of a core on each of scattered nodes, state in memory",
          .of = "nodes",
          .limit_name = "alloc of a core on one node",
          .ratio_bar = 40};
  row.points.push_back(compared(
      in_memory(bench), scattered_nodes,
      [](Ledger& ledger) { return ledger.change_scattered(scattered_nodes); },
      [](Ledger& ledger) { return ledger.change_one(); }));
  return row;
}

Row hold(const Bench& bench) {
  Row row{.name = "the same: the longest time for which it holds the loop", .of = "nodes", .most_turns = 20};
  row.points.push_back({.size = scattered_nodes,
                        .prepare = [&bench]() -> Sampler {
                          return [at = std::make_shared<Ledger>(in_memory(bench), 0)] {
                            return at->hold_of_scattered(scattered_nodes);
                          };
                        },
                        .bar = 5 * ms});
  return row;
}

Row transaction(const Bench& bench) {
  constexpr std::uint64_t allocations = 2'000;
  Row row{.name = "allocs of a core in one request",
          .of = "allocations",
          .limit_name = "one request each, 256 in flight",
          .ratio_bar = 0.25,
          .is_paired = true,
          .most_turns = 20};
  row.points.push_back(compared(
      bench, allocations, [](Ledger& ledger) { return ledger.alloc_many(allocations, true); },
      [](Ledger& ledger) { return ledger.alloc_many(allocations, false); }));
  return row;
}

/// A start with allocations and one without, whose difference is what the allocations cost.
Sampler start_beyond_empty(const Bench& bench, std::uint64_t present) {
  return [with = std::make_shared<Ledger>(bench, present), without = std::make_shared<Ledger>(bench, 0)] {
    return with->restart() - without->restart();
  };
}

Row start(const Bench& bench) {
  constexpr std::uint64_t few = 10'000;
  constexpr std::uint64_t many = 100'000;
  Row row{.name = "start to READY with allocations, beyond that without",
          .of = "allocations",
          .limit_name = "the same with 10,000 allocations",
          .ratio_bar = 15,
          .most_turns = 10};
  row.points.push_back({.size = few, .prepare = [&bench] { return start_beyond_empty(bench, few); }});
  row.points.push_back({.size = many,
                        .prepare = [&bench] { return start_beyond_empty(bench, many); },
                        .limit =
                            [&bench, sampler = Sampler()]() mutable {
                              if (!sampler) sampler = start_beyond_empty(bench, few);
                              return sampler();
                            },
                        .only_full = true});
  return row;
}

}  // namespace

std::vector<Row> ledger_rows(const Bench& bench) {
  Row rate = row_of(bench,
                    {.name = "alloc and free of a core, 256 in flight, 16,384 targets",
                     .unit = Unit::rate,
                     .of = "allocations",
                     .limit_name = "round trip of an echo, 256 in flight",
                     .growth_bar = growth::flat,
                     .most_turns = 20},
                    1.0 / 29'062, [](Ledger& ledger) { return ledger.change_many(2'048); });
  for (Point& point : rate.points) point.limit = bench.limits.round_trip_of_many();
  Row first = row_of(bench,
                     {.name = "acquire to first response with the allocations, 16,384 targets",
                      .of = "allocations",
                      .growth_bar = growth::linear,
                      .most_turns = 20},
                     0, [](Ledger& ledger) { return ledger.acquire_again(); });
  for (Point& point : first.points) point.bar = point.size > 10'000 ? 0 : 10 * ms;
  Row of_one = row_of(bench,
                      {.name = "resource.allocations of one target",
                       .of = "allocations",
                       .growth_bar = growth::flat,
                       .most_turns = 100},
                      0, [](Ledger& ledger) { return ledger.list_one(); });
  Row table = row_of(bench,
                     {.name = "resourcectl allocations, the table",
                      .of = "allocations",
                      .growth_bar = growth::linear,
                      .most_turns = 10},
                     0, [](Ledger& ledger) { return ledger.list_all(); });
  return {rate, scattered(bench), hold(bench), transaction(bench), start(bench), first, of_one, table};
}

}  // namespace resourced::bench

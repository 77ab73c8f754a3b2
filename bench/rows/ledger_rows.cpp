// The ledger of allocations: the rate of alloc and free, and the first response to a scheduler that takes
// over many allocations.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

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
  void acquire() {
    stream_ = scheduler_.open("resource.acquire", R"({"allocations":true})");
    scheduler_.expect();
  }

  static std::string r_of(std::uint64_t rank, std::uint64_t core) {
    return fmt::format(
        R"({{"version":1,"execution":{{"R_lite":[{{"rank":"{0}","children":{{"core":"{1}"}}}}],)"
        R"("nodelist":["node{0}"],"starttime":0.0,"expiration":0.0}}}})",
        rank, core);
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

}  // namespace

std::vector<Row> ledger_rows(const Bench& bench) {
  Row rate = row_of(bench,
                    {.name = "alloc and free of a core, 256 in flight, 16,384 targets",
                     .unit = Unit::rate,
                     .of = "allocations",
                     .growth_bar = growth::flat,
                     .most_turns = 20},
                    1.0 / 20'000, [](Ledger& ledger) { return ledger.change_many(2'048); });
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
  return {rate, first, of_one, table};
}

}  // namespace resourced::bench

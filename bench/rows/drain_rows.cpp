// The time from an operator's change until the scheduler that holds the resources hears of it, with one
// request at a time and with many in flight.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/measure/measure.hpp"
#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"
#include "core/text/idset.hpp"

namespace resourced::bench {

using text::IdSet;

namespace {

constexpr std::uint64_t sizes[] = {1'024, 16'384, 131'072, 1'048'576};

/// A scheduler that holds everything, and an operator.
class Held {
 public:
  Held(const Bench& bench, std::uint64_t size)
      : size_(size),
        targets_(size),
        cluster_(bench, size),
        scheduler_(cluster_.uri()),
        operator_(cluster_.uri()) {
    scheduler_.open("resource.acquire");
    scheduler_.expect();
  }

  double drain_to_down() {
    const std::string target = targets_.next();
    const double time =
        change("resource.drain", fmt::format(R"({{"targets":"{}","reason":"measured"}})", target),
               fmt::format(R"({{"down":"{}"}})", target));
    change("resource.undrain", fmt::format(R"({{"targets":"{}"}})", target),
           fmt::format(R"({{"up":"{}"}})", target));
    return time;
  }

  /// Returns the median of several drains: the time of a single one varies by more than waiting requests
  /// cost.
  double drains_to_down() {
    constexpr int drains = 25;
    Samples times;
    for (int i = 0; i < drains; ++i) times.add(drain_to_down());
    return times.median();
  }

  /// Lets as many requests wait until a target is idle, on another connection.
  void wait_for_idle(std::uint64_t count) {
    BusClient& client = add_waiting();
    for (std::uint64_t i = 0; i < count; ++i)
      client.send("resource.wait", fmt::format(R"({{"targets":"{}","for":"idle","unreported":"wait"}})", i));
    client.call("resource.ping");
  }

  /// Lets as many schedulers wait for the resources, on a connection each. As 64 of one user may wait, there
  /// are several users.
  void wait_for_resources(std::uint64_t count) {
    constexpr std::uint32_t first_user = 100'000;
    constexpr std::uint64_t most_of_user = 64;
    for (std::uint64_t i = 0; i < count; ++i) {
      BusClient& client = add_waiting();
      client.speak_for(first_user + static_cast<std::uint32_t>(i / most_of_user));
      client.open("resource.acquire", R"({"wait":true})");
      // An acquire that is refused is answered before the ping.
      client.call("resource.ping");
    }
  }

  double property_to_scheduler() {
    const std::string target = targets_.next();
    const auto payload = [&](const char* op) {
      return fmt::format(R"({{"op":"{}","name":"measured","targets":"{}"}})", op, target);
    };
    const double time = change("resource.property", payload("add"), {});
    change("resource.property", payload("remove"), {});
    return time;
  }

  /// Returns the time per drain of `count` drains, until the scheduler has received all.
  double drain_many(std::uint64_t count) {
    constexpr std::uint64_t in_flight = 256;
    IdSet drained;
    std::vector<std::string> requests;
    while (drained.count() < count) {
      const std::string target = targets_.next();
      drained |= IdSet::parse(target);
      requests.push_back(fmt::format(R"({{"targets":"{}","reason":"measured"}})", target));
    }
    const double time = time_of([&] {
      for (std::size_t i = 0; i < requests.size() + in_flight; ++i) {
        if (i >= in_flight) operator_.expect();
        if (i < requests.size()) operator_.send("resource.drain", requests[i]);
      }
      expect_all("down", drained);
    });
    operator_.call("resource.undrain", fmt::format(R"({{"targets":"{}"}})", drained.encode()));
    expect_all("up", drained);
    return time / static_cast<double>(count);
  }

 private:
  BusClient& add_waiting() {
    waiting_.push_back(std::make_unique<BusClient>(cluster_.uri()));
    return *waiting_.back();
  }

  /// Returns the time until the scheduler receives `expected`, or any message if that is empty.
  double change(const char* topic, const std::string& payload, const std::string& expected) {
    const double time = time_of([&] {
      operator_.send(topic, payload);
      const auto heard = scheduler_.expect();
      if (!expected.empty() && heard.payload != expected) {
        throw std::runtime_error(fmt::format("expected {}, heard {}", expected, heard.payload));
      }
    });
    operator_.expect();
    return time;
  }

  void expect_all(const char* key, IdSet targets) {
    while (!targets.empty()) {
      targets -= IdSet::parse(nlohmann::json::parse(scheduler_.expect().payload).at(key).get<std::string>());
    }
  }

  std::uint64_t size_;
  Wanderer targets_;
  Cluster cluster_;
  BusClient scheduler_;
  BusClient operator_;
  /// The clients whose requests wait.
  std::vector<std::unique_ptr<BusClient>> waiting_;
};

template <class Work>
Row row_of(const Bench& bench, Row row, Work work) {
  for (const std::uint64_t size : sizes) {
    row.points.push_back({.size = size, .prepare = [&bench, size, work]() -> Sampler {
                            return [held = std::make_shared<Held>(bench, size), work] { return work(*held); };
                          }});
  }
  return row;
}

/// The targets, and the requests that wait.
constexpr std::uint64_t held_size = 16'384;
constexpr std::uint64_t waiting = 1'000;

/// Compares a drain beside requests that wait, which `wait` sends, with one in another daemon without them.
Row beside_waiting(const Bench& bench, const char* name, void (Held::*wait)(std::uint64_t count)) {
  Row row{.name = name,
          .limit_name = "the same without them",
          .ratio_bar = 1.05,
          .is_paired = true,
          .most_turns = 20};
  row.points.push_back({.size = held_size,
                        .prepare = [&bench, wait]() -> Sampler {
                          const auto held = std::make_shared<Held>(bench, held_size);
                          ((*held).*wait)(waiting);
                          return [held] { return held->drains_to_down(); };
                        },
                        .limit =
                            [&bench, held = std::make_shared<std::shared_ptr<Held>>()] {
                              if (!*held) *held = std::make_shared<Held>(bench, held_size);
                              return (*held)->drains_to_down();
                            }});
  return row;
}

}  // namespace

std::vector<Row> drain_rows(const Bench& bench) {
  Row latency = row_of(bench,
                       {.name = "drain one target to down at the scheduler",
                        .limit_name = "round trip + append + fdatasync",
                        .ratio_bar = 3,
                        .growth_bar = growth::flat},
                       [](Held& held) { return held.drain_to_down(); });
  latency.points[0].peer = 1.3 * ms;
  latency.points[1].peer = 7.3 * ms;

  Row property = row_of(bench,
                        {.name = "property of one target to the scheduler",
                         .limit_name = "round trip + append + fdatasync",
                         .growth_bar = growth::flat},
                        [](Held& held) { return held.property_to_scheduler(); });
  for (Row* row : {&latency, &property}) {
    for (Point& point : row->points) point.limit = bench.limits.round_trip_and_commit();
  }

  Row rate = row_of(bench,
                    {.name = "drains of single targets, 256 in flight, a scheduler listening",
                     .unit = Unit::rate,
                     .growth_bar = growth::flat,
                     .most_turns = 20},
                    [](Held& held) { return held.drain_many(1'024); });
  for (Point& point : rate.points) point.bar = 1.0 / 20'000;
  rate.points[0].peer = 1.0 / 2'311;
  rate.points[1].peer = 1.0 / 142;
  return {latency, property, rate,
          beside_waiting(bench, "drain one target to down, 1,000 schedulers waiting to acquire",
                         &Held::wait_for_resources),
          beside_waiting(bench, "drain one target to down, 1,000 requests of resource.wait",
                         &Held::wait_for_idle)};
}

}  // namespace resourced::bench

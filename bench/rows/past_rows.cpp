// The state at a past time (resource.status-at): its cost must not grow with the length of the log.
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"

namespace resourced::bench {
namespace {

constexpr std::uint64_t nodes_of_past = 16'384;

/// A cluster whose log has drains and undrains of single targets in turns. They are made by requests, because
/// the daemon writes its snapshots while it runs.
class Remembered {
 public:
  Remembered(const Bench& bench, std::uint64_t events)
      : cluster_(bench, nodes_of_past), client_(cluster_.uri()) {
    begin_ = epoch_seconds();
    constexpr std::uint64_t in_flight = 256;
    for (std::uint64_t i = 0; i < events + in_flight; ++i) {
      if (i >= in_flight) client_.expect();
      if (i >= events) continue;
      client_.send(i % 2 == 0 ? "resource.drain" : "resource.undrain",
                   fmt::format(R"({{"targets":"{}"}})", i / 2 % nodes_of_past));
    }
    end_ = epoch_seconds();
  }

  /// Requests the status at another time in the log with each call.
  double ask() {
    constexpr double golden_ratio = 0.6180339887498949;
    place_ += golden_ratio;
    if (place_ > 1) place_ -= 1;
    const std::string request = fmt::format(R"({{"at":{:.6f}}})", begin_ + (end_ - begin_) * place_);
    return time_of([&] { client_.call("resource.status-at", request); });
  }

 private:
  static double epoch_seconds() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }

  Cluster cluster_;
  BusClient client_;
  double begin_ = 0;
  double end_ = 0;
  double place_ = 0;
};

}  // namespace

std::vector<Row> past_rows(const Bench& bench) {
  Row row{.name = "resource.status-at, 16,384 targets",
          .of = "events",
          .growth_bar = growth::flat,
          .most_turns = 60};
  for (const std::uint64_t events : {10'000, 100'000, 1'000'000}) {
    row.points.push_back({.size = events,
                          .prepare = [&bench, events]() -> Sampler {
                            return [at = std::make_shared<Remembered>(bench, events)] { return at->ask(); };
                          },
                          .bar = 50 * ms,
                          .only_full = events > 100'000});
  }
  return {row};
}

}  // namespace resourced::bench

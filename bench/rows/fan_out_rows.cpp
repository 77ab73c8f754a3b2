// One scheduler and a thousand consumers of the journal at 10,000 events a second: how far the consumers
// delay the scheduler, and what they cost the daemon.
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <zmq.h>

#include "bench/measure/measure.hpp"
#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"
#include "core/text/idset.hpp"
#include "harness/process.hpp"

namespace resourced::bench {
namespace {

constexpr std::uint64_t nodes = 16'384;
constexpr std::uint64_t events_a_second = 10'000;

struct FanOut {
  /// Seconds from the due time of an event until the scheduler receives it.
  double p99 = 0;
  /// Seconds from the last event until the last consumer has received it.
  double lag = 0;
  double most_memory = 0;
};

/// Sends drains and undrains when they are due, and records when the scheduler receives each.
class Load {
 public:
  explicit Load(const std::string& uri) : scheduler_(uri), operator_(uri), due_(nodes) {
    scheduler_.open("resource.acquire");
    scheduler_.expect();
  }

  void run(std::uint64_t events) {
    const auto start = Clock::now();
    std::uint64_t sent = 0;
    std::uint64_t answered = 0;
    while (answered < events) {
      const auto due = static_cast<std::uint64_t>(seconds_since(start) * events_a_second);
      for (; sent < std::min(due, events); ++sent) send(sent, start);
      while (const auto answer = operator_.receive_now()) {
        if (answer->errnum != 0) throw std::runtime_error(std::string(answer->payload));
        ++answered;
      }
      while (const auto news = scheduler_.receive_now()) hear(news->payload);
      wait();
    }
    // The remaining updates precede the answer to this ping.
    const std::uint32_t last = scheduler_.send("resource.ping", "{}");
    for (auto news = scheduler_.expect(); news.matchtag != last; news = scheduler_.expect())
      hear(news.payload);
  }

  [[nodiscard]] double p99() const { return heard_.percentile(99); }

 private:
  /// Sends the next change: drains all targets in turn, then undrains all, and so on.
  void send(std::uint64_t number, Clock::time_point start) {
    const std::uint64_t target = number % nodes;
    // Count the earlier change as received now: the daemon omits a change that is reversed before the
    // scheduler gets it.
    if (due_[target]) hear_of(target, Clock::now());
    due_[target] = start + std::chrono::microseconds(number * 1'000'000 / events_a_second);
    operator_.send(number / nodes % 2 == 0 ? "resource.drain" : "resource.undrain",
                   fmt::format(R"({{"targets":"{}"}})", target));
  }

  void hear(std::string_view payload) {
    const auto now = Clock::now();
    const auto news = nlohmann::json::parse(payload);
    for (const char* key : {"down", "up"}) {
      if (!news.contains(key)) continue;
      text::IdSet::parse(news.at(key).get_ref<const std::string&>()).for_each([&](text::IdSet::Id target) {
        hear_of(target, now);
      });
    }
  }

  void hear_of(std::uint64_t target, Clock::time_point now) {
    if (due_[target]) heard_.add(std::chrono::duration<double>(now - *due_[target]).count());
    due_[target].reset();
  }

  /// Waits for a message or the next due event, at most 1 ms.
  void wait() {
    std::array<zmq_pollitem_t, 2> items{
        {{scheduler_.socket(), 0, ZMQ_POLLIN, 0}, {operator_.socket(), 0, ZMQ_POLLIN, 0}}};
    ::zmq_poll(items.data(), items.size(), 1);
  }

  BusClient scheduler_;
  BusClient operator_;
  /// The due time of the last event of each target, until the scheduler has received it.
  std::vector<std::optional<Clock::time_point>> due_;
  Samples heard_;
};

FanOut fan_out(const Bench& bench, std::uint64_t consumers, std::uint64_t events) {
  // Allow many outstanding requests: events are sent when due, even if earlier ones are unanswered.
  const std::string config = equal_nodes(nodes) + "[limits]\noutstanding-requests = 1000000\n";
  Cluster cluster(bench, config, [](const test::TempDir& /*dir*/) {});
  Load load(cluster.uri());
  std::unique_ptr<e2e::Process> process;
  if (consumers > 0) {
    process = std::make_unique<e2e::Process>(std::vector<std::string>{
        bench.self, "--consumers", cluster.uri(), std::to_string(consumers), std::to_string(events)});
    process->expect_line();
  }
  load.run(events);
  FanOut result{.p99 = load.p99()};
  if (process) {
    result.lag = time_of([&] {
      const e2e::Deadline patience(std::chrono::minutes(5));
      if (process->read_line(patience) != "done") throw std::runtime_error(process->finish().err);
    });
  }
  result.most_memory = cluster.most_memory();
  return result;
}

/// Caches runs, as several rows report figures of the same run.
class Runs {
 public:
  explicit Runs(const Bench& bench) : bench_(bench) {}

  const FanOut& with(std::uint64_t consumers, std::uint64_t seconds) {
    const auto known = runs_.find({consumers, seconds});
    if (known != runs_.end()) return known->second;
    return runs_[{consumers, seconds}] = fan_out(bench_, consumers, seconds * events_a_second);
  }

 private:
  const Bench& bench_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, FanOut> runs_;
};

}  // namespace

std::vector<Row> fan_out_rows(const Bench& bench) {
  const auto runs = std::make_shared<Runs>(bench);
  const auto points = [&](double FanOut::*side, bool against_none) {
    std::vector<Point> made;
    for (const std::uint64_t consumers : {100, 1'000}) {
      const std::uint64_t seconds = consumers == 1'000 ? 10 : 2;
      made.push_back({.size = consumers,
                      .prepare = [runs, consumers, seconds, side]() -> Sampler {
                        return
                            [runs, consumers, seconds, side] { return runs->with(consumers, seconds).*side; };
                      },
                      .only_full = consumers == 1'000});
      if (!against_none) continue;
      made.back().limit = [runs, seconds, side] { return runs->with(0, seconds).*side; };
    }
    return made;
  };
  const auto row = [&](const char* name, Unit unit) {
    return Row{.name = name, .unit = unit, .of = "consumers", .most_turns = 1};
  };
  Row p99 = row("10,000 events a second: 99 % of them known to the scheduler", Unit::time);
  p99.limit_name = "the same without consumers";
  p99.ratio_bar = 2;
  p99.points = points(&FanOut::p99, true);
  Row lag = row("10,000 events a second: from the last to all consumers having all", Unit::time);
  lag.points = points(&FanOut::lag, false);
  Row memory = row("10,000 events a second: most memory of the daemon", Unit::bytes);
  memory.points = points(&FanOut::most_memory, false);
  return {p99, lag, memory};
}

}  // namespace resourced::bench

// The journal (RFC 44), and the costs of a long history.
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/load/limits.hpp"
#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"
#include "core/json/reader.hpp"
#include "core/json/utf8.hpp"

namespace resourced::bench {
namespace {

constexpr std::uint64_t nodes = 16'384;
/// The first timestamp, in 2001, and the seconds between events.
constexpr double long_ago = 1e9;
constexpr double apart = 0.1;

/// Returns a log of hosts that are drained and undrained in turns, about 120 bytes an event.
std::string past(std::uint64_t events) {
  std::string text;
  for (std::uint64_t i = 0; i < events; ++i) {
    const std::uint64_t rank = i / 2 % nodes;
    const bool drains = i % 2 == 0;
    fmt::format_to(std::back_inserter(text),
                   R"({{"timestamp":{:.1f},"name":"{}","context":{{"idset":"{}","nodelist":"node{}"{}}}}})"
                   "\n",
                   long_ago + static_cast<double>(i) * apart, drains ? "drain" : "undrain", rank, rank,
                   drains ? R"(,"reason":"a reason of some length","overwrite":0)" : "");
  }
  return text;
}

/// Makes a cluster whose store has `events` imported events when it starts.
std::shared_ptr<Cluster> cluster_with_past(const Bench& bench, std::uint64_t events) {
  return std::make_shared<Cluster>(bench, equal_nodes(nodes), [events](const e2e::TempDir& dir) {
    const auto config = dir.write("resourced.toml", equal_nodes(nodes));
    const auto log = dir.write("past", past(events));
    const auto imported =
        e2e::Process(e2e::resourced_command({"--config", config, "--state", dir / "state", "--import", log}))
            .finish(e2e::Deadline(std::chrono::minutes(5)));
    if (imported.status != 0) throw std::runtime_error(imported.err);
  });
}

/// Opens the journal and decodes the history as the client library does. Requires at least `least` events.
class Replay {
 public:
  Replay(std::shared_ptr<Cluster> cluster, std::string request, std::uint64_t least)
      : cluster_(std::move(cluster)), client_(cluster_->uri()), request_(std::move(request)), least_(least) {}

  double once() {
    std::uint32_t stream = 0;
    std::uint64_t count = 0;
    const double time = time_of([&] {
      stream = client_.open("resource.journal", request_);
      while (true) {
        const std::string_view payload = client_.expect().payload;
        if (json_text::find_invalid_utf8(payload)) throw std::runtime_error("a batch is not UTF-8");
        const auto batch = read_json(payload, 64, json_text::JsonManners::lenient);
        const auto events = std::get<nlohmann::json>(batch).at("events").size();
        if (events == 0) break;
        count += events;
      }
    });
    if (count < least_) throw std::runtime_error(fmt::format("{} of {} events came", count, least_));
    client_.cancel("resource.journal", stream);
    return time;
  }

 private:
  std::shared_ptr<Cluster> cluster_;
  BusClient client_;
  std::string request_;
  std::uint64_t least_;
};

Row replay(const Bench& bench) {
  Row row{.name = "journal: replay all events, decoding included",
          .of = "events",
          .limit_name = "copy of the text",
          .growth_bar = growth::linear};
  for (const std::uint64_t events : {1'000, 10'000, 100'000}) {
    row.points.push_back({.size = events,
                          .prepare = [&bench, events]() -> Sampler {
                            const auto replay = std::make_shared<Replay>(cluster_with_past(bench, events),
                                                                         R"({"since":0})", events);
                            return [replay] { return replay->once(); };
                          },
                          .limit = Limits::copy([events] { return past(events).size(); }),
                          .only_full = events > 10'000});
    if (events == 10'000) row.points.back().bar = 15 * ms, row.points.back().peer = 29.5 * ms;
  }
  return row;
}

Row since(const Bench& bench) {
  static constexpr std::uint64_t wanted = 100;
  Row row{.name = "journal: replay the last 100 events with since",
          .of = "events",
          .limit_name = "round trip",
          .growth_bar = growth::flat};
  for (const std::uint64_t events : {1'000, 10'000, 1'000'000}) {
    row.points.push_back(
        {.size = events,
         .prepare = [&bench, events]() -> Sampler {
           const std::string request =
               fmt::format(R"({{"since":{:.1f}}})", long_ago + static_cast<double>(events - wanted) * apart);
           const auto replay = std::make_shared<Replay>(cluster_with_past(bench, events), request, wanted);
           return [replay] { return replay->once(); };
         },
         .limit = bench.limits.round_trip(),
         .only_full = events > 10'000});
  }
  return row;
}

/// Measures a drain and its response, without a scheduler.
Row drain_after(const Bench& bench) {
  Row row{.name = "drain to its response after earlier events",
          .of = "events",
          .limit_name = "round trip + append + fdatasync",
          .growth_bar = growth::flat};
  for (const std::uint64_t events : {500, 5'000, 10'000, 1'000'000}) {
    row.points.push_back({.size = events,
                          .prepare = [&bench, events]() -> Sampler {
                            const auto cluster = cluster_with_past(bench, events);
                            const auto client = std::make_shared<BusClient>(cluster->uri());
                            return [cluster, client, targets = Wanderer(nodes)]() mutable {
                              const std::string payload =
                                  fmt::format(R"({{"targets":"{}"}})", targets.next());
                              const double time = time_of([&] { client->call("resource.drain", payload); });
                              client->call("resource.undrain", payload);
                              return time;
                            };
                          },
                          .limit = bench.limits.round_trip_and_commit(),
                          .only_full = events > 10'000});
  }
  row.points[0].peer = 1.5 * ms;
  row.points[1].peer = 14.7 * ms;
  row.points[2].peer = 28 * ms;
  return row;
}

}  // namespace

std::vector<Row> journal_rows(const Bench& bench) {
  return {replay(bench), since(bench), drain_after(bench)};
}

}  // namespace resourced::bench

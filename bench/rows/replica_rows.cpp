// Clusters of daemons with their log in etcd: what a commit costs beside the bare transaction, and how fast
// and large a standby is. Without etcd there are no rows.
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/load/replicas.hpp"
#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"

namespace resourced::bench {
namespace {

constexpr std::uint64_t nodes = 16'384;
constexpr std::uint64_t in_flight = 256;
/// Delay of the link with which a transaction takes 5 ms.
constexpr double link_delay = 4 * ms;

/// A leader with an etcd of one member, over a separate link.
struct Led {
  explicit Led(const Bench& bench, double delay = 0)
      : link(delay > 0 ? std::make_unique<SlowLink>(etcd.client_port(0), delay) : nullptr),
        url(link ? link->url() : etcd.urls().at(0)),
        leader(bench, "one", url, nodes) {
    leader.until_leading();
  }

  test::Etcd etcd;
  std::unique_ptr<SlowLink> link;
  std::string url;
  Member leader;
};

/// Drains targets one request each, with `in_flight` under way, and returns them.
void drain_many(BusClient& client, Wanderer& targets, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count + in_flight; ++i) {
    if (i >= in_flight) client.expect();
    if (i < count)
      client.send(
          "resource.drain",
          fmt::format(R"({{"targets":"{}","reason":"measured","mode":"overwrite"}})", targets.next()));
  }
}

/// Measures commits, with the time of a bare transaction over the same link as the limit.
Row commit(const Bench& bench) {
  Row row{.name = "cluster: drain one target, until it is answered",
          .limit_name = "round trip + bare guarded transaction of etcd",
          .ratio_bar = 1.5};
  const auto led = std::make_shared<std::unique_ptr<Led>>();
  const auto bare = std::make_shared<std::unique_ptr<BareCommits>>();
  Point point;
  point.size = nodes;
  point.prepare = [&bench, led]() -> Sampler {
    *led = std::make_unique<Led>(bench);
    return [led, client = std::make_shared<BusClient>((*led)->leader.uri()),
            targets = Wanderer(nodes)]() mutable {
      return time_of([&] {
        client->call(
            "resource.drain",
            fmt::format(R"({{"targets":"{}","reason":"measured","mode":"overwrite"}})", targets.next()));
      });
    };
  };
  point.limit = [led, bare, trip = bench.limits.round_trip()] {
    if (!*bare) *bare = std::make_unique<BareCommits>((*led)->url);
    return trip() + time_of([&] { (*bare)->once(); });
  };
  row.points.push_back(std::move(point));
  return row;
}

/// Measures the rate over a link with which a transaction takes 5 ms, like a network and a disk.
Row rate(const Bench& bench) {
  Row row{.name = "cluster: drains, 256 in flight, a transaction takes 5 ms",
          .unit = Unit::rate,
          .most_turns = 20};
  row.points.push_back({.size = nodes,
                        .prepare = [&bench]() -> Sampler {
                          auto led = std::make_shared<Led>(bench, link_delay);
                          auto client = std::make_shared<BusClient>(led->leader.uri());
                          return [led, client, targets = Wanderer(nodes)]() mutable {
                            constexpr std::uint64_t count = 10'000;
                            return time_of([&] { drain_many(*client, targets, count); }) / count;
                          };
                        },
                        .bar = 1.0 / 20'000});
  return row;
}

/// A leader and a standby.
struct Pair : Led {
  explicit Pair(const Bench& bench) : Led(bench), standby(bench, "two", url, nodes), operators(leader.uri()) {
    standby.until_following(last_event(leader.uri()));
  }

  void drain(std::uint64_t count) { drain_many(operators, targets, count); }

  Member standby;
  BusClient operators;
  Wanderer targets{nodes};
};

Row memory(const Bench& bench) {
  Row row{.name = "cluster: memory of a standby, 8,192 drained",
          .unit = Unit::bytes,
          .limit_name = "memory of the leader",
          .ratio_bar = 1.1,
          .most_turns = 1};
  const auto pair = std::make_shared<std::unique_ptr<Pair>>();
  row.points.push_back({.size = nodes,
                        .prepare = [&bench, pair]() -> Sampler {
                          *pair = std::make_unique<Pair>(bench);
                          (*pair)->drain(nodes / 2);
                          (*pair)->standby.until_following(last_event((*pair)->leader.uri()));
                          return [pair] { return (*pair)->standby.memory(); };
                        },
                        .limit = [pair] { return (*pair)->leader.memory(); }});
  return row;
}

/// Measures the time from the start of a standby until its disk and its answers have all events.
Row catching_up(const Bench& bench) {
  Row row{.name = "cluster: a standby is started that lacks events", .of = "events", .most_turns = 1};
  for (const std::uint64_t events : {10'000, 100'000}) {
    row.points.push_back({.size = events,
                          .prepare = [&bench, events]() -> Sampler {
                            auto pair = std::make_shared<Pair>(bench);
                            pair->standby.stop();
                            pair->drain(events);
                            return [pair] {
                              const std::uint64_t last = last_event(pair->leader.uri());
                              pair->standby.start();
                              return pair->standby.until_following(last);
                            };
                          },
                          .bar = events == 100'000 ? 2.0 : 0,
                          .only_full = events == 100'000});
  }
  return row;
}

Row takeover(const Bench& bench) {
  Row row{.name = "cluster: kill -9 of the leader to the first answered change", .most_turns = 1};
  // The bar is the time to live of the leader's lease, and two seconds.
  row.points.push_back({.size = nodes,
                        .prepare = [&bench]() -> Sampler {
                          auto pair = std::make_shared<Pair>(bench);
                          return [pair] {
                            pair->leader.kill();
                            return seconds_until_changed(pair->standby.uri());
                          };
                        },
                        .bar = 4.0});
  return row;
}

Row hand_over(const Bench& bench) {
  Row row{.name = "cluster: a hand-over to the first answered change", .most_turns = 1};
  row.points.push_back({.size = nodes,
                        .prepare = [&bench]() -> Sampler {
                          auto pair = std::make_shared<Pair>(bench);
                          return [pair] {
                            BusClient client(pair->leader.uri());
                            client.send("resource.hand-over");
                            return seconds_until_changed(pair->standby.uri());
                          };
                        },
                        .bar = 0.5});
  return row;
}

}  // namespace

std::vector<Row> replica_rows(const Bench& bench) {
  if (!has_etcd()) return {};
  return {commit(bench), rate(bench), memory(bench), catching_up(bench), takeover(bench), hand_over(bench)};
}

}  // namespace resourced::bench

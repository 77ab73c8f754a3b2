// Changes of the inventory: one that is divided into many partitions, whose schedulers come and go, and one
// whose targets leave or change their properties.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"

namespace resourced::bench {
namespace {

constexpr std::uint64_t targets = 16'384;

/// Returns a configuration whose partitions take the targets in turns, so that the targets of none are a
/// range. Half of the partitions are defined by a property, the others name their targets.
std::string divided(std::uint64_t partitions) {
  std::string config = equal_nodes(targets);
  config += fmt::format("[limits]\noutstanding-requests = 65536\nrequests-per-second = 1000000\n");
  for (std::uint64_t part = 0; part < partitions; ++part) {
    std::string ranks;
    for (std::uint64_t rank = part; rank < targets; rank += partitions)
      ranks += fmt::format("{}{}", ranks.empty() ? "" : ",", rank);
    const bool by_property = part % 2 == 1;
    if (by_property) {
      std::string hosts;
      for (std::uint64_t rank = part; rank < targets; rank += partitions)
        hosts += fmt::format("{}node{}", hosts.empty() ? "" : ",", rank);
      config += fmt::format("[[resource.config]]\nhosts = \"{}\"\nproperties = [\"part{}\"]\n", hosts, part);
    }
    config += fmt::format(
        "[[acquire.partition]]\nname = \"p{}\"\n{}\n", part,
        by_property ? fmt::format("constraint = \"part{}\"", part) : fmt::format("targets = \"{}\"", ranks));
  }
  return config;
}

class Divided {
 public:
  Divided(const Bench& bench, std::uint64_t partitions)
      : partitions_(partitions),
        cluster_(bench, divided(partitions), [](const test::TempDir& /*dir*/) {}),
        client_(cluster_.uri()) {}

  /// Makes one scheduler acquire each partition.
  double acquire() {
    return time_of([&] {
      for (std::uint64_t part = 0; part < partitions_; ++part)
        streams_.push_back(client_.open("resource.acquire", fmt::format(R"({{"partition":"p{}"}})", part)));
      for (std::uint64_t part = 0; part < partitions_; ++part) client_.expect();
    });
  }
  /// Ends all schedulers.
  double leave() {
    return time_of([&] {
      constexpr std::uint8_t no_response = 4;
      for (const std::uint32_t stream : streams_)
        client_.send("resource.acquire-cancel", fmt::format(R"({{"matchtag":{}}})", stream), no_response);
      for (std::size_t i = 0; i < streams_.size(); ++i) client_.receive();
      streams_.clear();
    });
  }
  double status() {
    return time_of([&] { client_.call("resource.status"); });
  }
  /// Adds or removes a property of a target of one partition.
  double change(const std::string& property, bool has_it) {
    has_changed_ = !has_changed_;
    const char* op = has_it == has_changed_ ? "remove" : "add";
    return time_of([&] {
      client_.call("resource.property",
                   fmt::format(R"({{"op":"{}","name":"{}","targets":"1"}})", op, property));
    });
  }

 private:
  std::uint64_t partitions_;
  Cluster cluster_;
  BusClient client_;
  std::vector<std::uint32_t> streams_;
  bool has_changed_ = false;
};

template <class Work>
Row row_of(const Bench& bench, Row row, Work work) {
  row.of = "partitions";
  row.most_turns = 20;
  for (const std::uint64_t partitions : {128, 512, 1'024}) {
    row.points.push_back({.size = partitions, .prepare = [&bench, partitions, work]() -> Sampler {
                            return [at = std::make_shared<Divided>(bench, partitions), work] {
                              return work(*at);
                            };
                          }});
  }
  return row;
}

/// Removes every other target; the rest has a property of run time. Possible once in the life of a daemon.
double shrink_half(const Bench& bench, std::uint64_t size) {
  const Cluster cluster(bench, size);
  BusClient client(cluster.uri());
  std::string half;
  for (std::uint64_t rank = 0; rank < size; rank += 2)
    half += fmt::format("{}{}", half.empty() ? "" : ",", rank);
  client.call("resource.property", fmt::format(R"({{"op":"add","name":"fast","targets":"0-{}"}})", size - 1));
  return time_of([&] { client.call("resource.shrink", fmt::format(R"({{"targets":"{}"}})", half)); });
}

Row shrink(const Bench& bench) {
  Row row{.name = "resource.shrink of every other target, the rest has a run-time property",
          .growth_bar = growth::linear,
          .most_turns = 3};
  for (const std::uint64_t size : {2'048, 8'192, 16'384}) {
    row.points.push_back({.size = size, .prepare = [&bench, size]() -> Sampler {
                            return [&bench, size] { return shrink_half(bench, size); };
                          }});
  }
  return row;
}

/// A daemon in which this many names of properties were added and removed again.
class Renamed {
 public:
  Renamed(const Bench& bench, std::uint64_t names) : cluster_(bench, 1'024), client_(cluster_.uri()) {
    for (std::uint64_t name = 0; name < names; ++name) {
      for (const char* op : {"add", "remove"}) change(op, fmt::format("p{}", name));
    }
  }
  double change_one() {
    const char* op = (adds_ = !adds_) ? "add" : "remove";
    return time_of([&] { change(op, "fast"); });
  }

 private:
  void change(const char* op, const std::string& name) {
    client_.call("resource.property", fmt::format(R"({{"op":"{}","name":"{}","targets":"1"}})", op, name));
  }

  Cluster cluster_;
  BusClient client_;
  bool adds_ = false;
};

Row renamed(const Bench& bench) {
  Row row{.name = "resource.property after names that were used and removed",
          .of = "names",
          .growth_bar = growth::flat,
          .most_turns = 20};
  for (const std::uint64_t names : {500, 2'000, 8'000}) {
    row.points.push_back({.size = names,
                          .prepare = [&bench, names]() -> Sampler {
                            return
                                [at = std::make_shared<Renamed>(bench, names)] { return at->change_one(); };
                          },
                          .only_full = names > 2'000});
  }
  return row;
}

}  // namespace

std::vector<Row> partition_rows(const Bench& bench) {
  return {
      row_of(bench,
             {.name = "a scheduler acquires each partition of 16,384 targets", .growth_bar = growth::linear},
             [](Divided& at) {
               const double time = at.acquire();
               at.leave();
               return time;
             }),
      row_of(bench, {.name = "all schedulers of partitions leave", .growth_bar = growth::linear},
             [](Divided& at) {
               at.acquire();
               return at.leave();
             }),
      row_of(bench, {.name = "resource.status with partitions", .growth_bar = growth::linear},
             [](Divided& at) { return at.status(); }),
      row_of(bench, {.name = "a property that divides, of one target", .growth_bar = growth::flat},
             [](Divided& at) { return at.change("part1", true); }),
      row_of(bench, {.name = "a property that divides nothing, of one target", .growth_bar = growth::flat},
             [](Divided& at) { return at.change("other", false); }),
      shrink(bench),
      renamed(bench)};
}

}  // namespace resourced::bench

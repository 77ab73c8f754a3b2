// The real daemon with a cluster of a given size, and functions that bring it into the state for a row.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/load/bus_client.hpp"
#include "bench/load/limits.hpp"
#include "harness/daemon.hpp"

namespace resourced::bench {

/// The parameters of the run, for the rows.
struct Bench {
  std::string directory;
  std::string self;
  const Limits& limits;
};

/// Returns a configuration of `size` equal nodes of 96 cores and 4 gpus.
[[nodiscard]] std::string equal_nodes(std::uint64_t size);

/// Selects a cluster whose R has an entry for each rank (workload.hpp, mixed_r).
struct MixedNodes {};
inline constexpr MixedNodes mixed_nodes;

class Cluster {
 public:
  Cluster(const Bench& bench, std::uint64_t size);
  Cluster(const Bench& bench, MixedNodes nodes, std::uint64_t size);
  /// Starts a daemon; `prepare` writes files beside the configuration, or a store, before that.
  Cluster(const Bench& bench, const std::string& config,
          const std::function<void(const test::TempDir&)>& prepare);

  [[nodiscard]] const std::string& uri() const { return daemon_.uri(); }
  [[nodiscard]] e2e::Daemon& daemon() { return daemon_; }

  /// Drains targets 0, stride, 2*stride..., one request each, with different reasons.
  void drain_each(std::uint64_t count, std::uint64_t stride = 1);

  /// The resident memory of the daemon in bytes: now, and its maximum so far.
  [[nodiscard]] double memory();
  [[nodiscard]] double most_memory();

 private:
  [[nodiscard]] double status_line(const std::string& name);

  test::TempDir dir_;
  e2e::Daemon daemon_;
};

/// Returns a different target each time. The stride is a prime, so that the targets are spread over the
/// cluster.
class Wanderer {
 public:
  explicit Wanderer(std::uint64_t size) : size_(size) {}
  [[nodiscard]] std::string next() {
    constexpr std::uint64_t stride = 7919;
    at_ = (at_ + stride) % size_;
    return std::to_string(at_);
  }

 private:
  std::uint64_t size_;
  std::uint64_t at_ = 0;
};

}  // namespace resourced::bench

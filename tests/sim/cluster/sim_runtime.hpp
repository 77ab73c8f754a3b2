// The runtime of a coordinator in a simulated cluster: a network to etcd that loses, delays and reorders
// requests and outcomes, and the loop and the steady clock of a node.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/log/etcd/runtime.hpp"
#include "etcd.hpp"
#include "world.hpp"

namespace resourced::sim {

/// The steady clock and the boot clock of a machine, which are the same, as no machine sleeps. The clock is a
/// little slower or faster than the true time.
struct Clock {
  Seconds offset{};
  double rate = 1;
  [[nodiscard]] SteadyTime read(SteadyTime now) const {
    return SteadyTime(offset + rate * now.time_since_epoch());
  }
  [[nodiscard]] BootTime boot(SteadyTime now) const { return BootTime(read(now).time_since_epoch()); }
  /// The true time at which the clock shows this time, or slightly later, as sums are rounded.
  template <class Time>
  [[nodiscard]] SteadyTime when(Time time) const {
    return SteadyTime((time.time_since_epoch() - offset) / rate + Seconds(1e-6));
  }
};

/// The network between the nodes and etcd.
class Network {
 public:
  Network(World& world, Etcd& etcd, std::size_t nodes) : world_(world), etcd_(etcd), cut_until_(nodes) {}

  /// Sends a request to etcd, and calls `handler` once with the outcome, unless the life has ended.
  void send(std::size_t node, const World::Life& life, cluster::Request request,
            daemon::log::etcd::Runtime::Handler handler);
  void cut(std::size_t node, SteadyTime until) { cut_until_[node] = std::max(cut_until_[node], until); }
  void mend() { cut_until_.assign(cut_until_.size(), world_.now()); }

 private:
  [[nodiscard]] bool is_cut(std::size_t node) const { return cut_until_[node] > world_.now(); }

  World& world_;
  Etcd& etcd_;
  std::vector<SteadyTime> cut_until_;
};

class SimRuntime final : public daemon::log::etcd::Runtime {
 public:
  /// `run` runs work on the node, like any other event there.
  SimRuntime(World& world, Network& network, std::size_t node, const Clock& clock,
             std::function<void(const std::function<void()>&)> run)
      : world_(world), network_(network), node_(node), clock_(clock), run_(std::move(run)) {}

  void send(cluster::Request request, Handler handler) override;
  [[nodiscard]] const std::string& trouble() const noexcept override { return trouble_; }
  [[nodiscard]] BootTime now() const override { return clock_.boot(world_.now()); }
  void post(std::function<void()> work) override;
  void run_at(BootTime when, std::function<void()> work) override;

 private:
  World& world_;
  Network& network_;
  std::size_t node_;
  const Clock& clock_;
  std::function<void(const std::function<void()>&)> run_;
  std::string trouble_;
  World::Life life_ = World::new_life();
  World::Life timer_;
};

}  // namespace resourced::sim

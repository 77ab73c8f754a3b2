// Simulates a cluster of daemons from one seed, without sockets, files, threads and clocks: several nodes
// (node.hpp), an etcd, a network that loses, delays and reorders messages, and clients. Nodes are paused,
// killed, stopped, disconnected from etcd and asked to hand over, and their clocks are set. Then a time
// without faults follows. These rules are checked:
//
//  - Each answered change is in the log of etcd once and in order, a refused one is not, and only the leader
//    extends the log, in the order of epochs and times (etcd.hpp).
//  - No message tells of an event that etcd does not have, no answer shows an older state than earlier ones,
//    and two daemons never serve at the same time.
//  - The holders of resources that etcd keeps change with the eviction of one of them.
//  - A deposed daemon sends no message after the first one of its successor.
//  - The status of a standby is the state after the event that it names, journals are the log, and the
//    picture of a scheduler is a state of the log, at the end the last one.
//  - The state of each daemon, whether it leads or not, is the one that a complete export of its log gives.
//  - At the end one daemon leads, all replicas have the whole log, and no request waits for an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client.hpp"
#include "etcd.hpp"
#include "node.hpp"
#include "sim_runtime.hpp"
#include "world.hpp"

namespace resourced::sim {

class ClusterSimulation {
 public:
  explicit ClusterSimulation(std::uint32_t seed);

  /// Runs for a time with faults, then without faults. Throws Violation.
  void run(Seconds faults);

  struct Counts {
    std::uint64_t events = 0;
    std::uint64_t answers = 0;
    std::uint64_t deltas = 0;
    std::uint64_t pictures = 0;
    std::uint64_t takeovers = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  void run_until(SteadyTime end);
  void break_something();
  void restart_later(std::size_t node);
  void calm_down();
  void take_turn(std::size_t client);
  void on_sent(Node& node, ClientId client, const proto::Message& message);
  /// Whether every node has all events of the leader.
  [[nodiscard]] bool is_even() const;
  void check_now();
  void judge() const;
  [[nodiscard]] Node& random_node() { return *nodes_[world_.below(nodes_.size())]; }

  World world_;
  Etcd etcd_;
  Network network_;
  std::vector<std::unique_ptr<Node>> nodes_;
  Site site_;
  std::vector<std::unique_ptr<Client>> clients_;
  /// The highest epoch of a leader that has sent a message.
  cluster::Revision served_ = 0;
  cluster::Revision last_epoch_ = 0;
  std::uint64_t takeovers_ = 0;
  /// Whether clients make no changes any more.
  bool rests_ = false;
};

}  // namespace resourced::sim

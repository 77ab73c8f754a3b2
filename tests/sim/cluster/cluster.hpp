// A cluster of daemons without sockets, files, threads and clocks, from one seed: several nodes (node.hpp),
// an etcd, a network that loses, delays and reorders, and clients. Nodes are paused, killed, stopped, cut off
// from etcd, made to hand over, and their clocks are set. Then all is calm for a while. It is checked that
//
//  - every answered change is in the log of etcd once and in order, no refused one is, and the log grows by
//    the leader alone, in the order of epochs and times (etcd.hpp);
//  - no message tells of an event before etcd has it, nothing shows an older state than was answered, and two
//    daemons never serve at the same time;
//  - no message leaves a daemon that was deposed after the first one of its successor;
//  - the status of a standby is the state after the event that it names, journals are the log, and the
//  picture
//    of a scheduler is a state of the log, in the end the last one;
//  - in the end one daemon leads, all replicas are the log, and nothing waits for an answer.
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

  /// Runs for a time with faults, then without any. Throws Violation.
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
  /// The epoch of the last message of a leader.
  cluster::Revision served_ = 0;
  cluster::Revision last_epoch_ = 0;
  std::uint64_t takeovers_ = 0;
  /// Clients make no changes.
  bool rests_ = false;
};

}  // namespace resourced::sim

// A node of a simulated cluster: the process of a daemon, which is alternately a standby and a leader as in
// daemon/follower.cpp and daemon/takeover.cpp, with its disk and its clocks. Everything between the network
// and the disk is the daemon's own code: member, coordinator, the leader's log, service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/cluster/member.hpp"
#include "daemon/log/current_log.hpp"
#include "daemon/log/etcd/coordinator.hpp"
#include "daemon/log/etcd/leader_log.hpp"
#include "daemon/service/service.hpp"
#include "etcd.hpp"
#include "peers.hpp"
#include "sim_log.hpp"
#include "sim_runtime.hpp"
#include "world.hpp"

namespace resourced::sim {

class Node final : public daemon::service::Program {
 public:
  /// The settings are equal on all nodes of a cluster, except for excluded targets and names.
  struct Settings {
    std::string name;
    Configuration configuration;
    std::size_t journal_max = 0;
    Seconds lease_ttl{};
    cluster::Sequence keep = 0;
    std::size_t part_bytes = 0;
  };
  struct Listeners {
    /// Called when a message leaves the node.
    std::function<void(Node&, ClientId, const proto::Message&)> sent;
    /// Called when the connections of the node have ended.
    std::function<void(Node&)> closed;
    /// Called when the process has ended; `fails` if its store does not fit the cluster.
    std::function<void(Node&, bool fails)> exited;
  };

  /// The last event of the engine, and the last committed one, after a message was handled; 0 for the latter
  /// while reads wait for the events of the start.
  struct Handled {
    std::uint64_t applied = 0;
    std::uint64_t committed = 0;
  };

  Node(World& world, Network& network, Etcd& etcd, std::size_t index, Settings settings, Listeners listeners);

  void start();
  /// Kills the process. A part of the data that was being written may be on the disk.
  void kill();
  /// Sends SIGTERM to the process.
  void stop();
  void set_wall_clock(Seconds offset) { wall_offset_ = offset; }
  /// Replaces the store by a copy of another one. Call it while the process does not run.
  void restore(const Node& from) {
    disk_ = from.disk_;
    identity_ = from.identity_;
  }

  /// Delivers a message after a delay, on the present connection of the client, which is made if there is
  /// none. Calls `handled` before any message leaves.
  void deliver(ClientId client, proto::Message message, std::function<void(const Handled&)> handled);
  void disconnect(ClientId client);
  void stall(ClientId client, bool stalls);
  [[nodiscard]] bool was_stalled(ClientId client) const { return were_stalled_.contains(client); }

  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] const std::string& name() const noexcept { return settings_.name; }
  [[nodiscard]] bool is_up() const noexcept { return service_ != nullptr; }
  /// Counts how often the node has begun to follow, or ended: connections end each time.
  [[nodiscard]] std::uint64_t phase() const noexcept { return phase_; }
  [[nodiscard]] bool leads() const noexcept { return leader_ != nullptr; }
  /// The epoch of the leader. Requires leads().
  [[nodiscard]] cluster::Revision epoch() const { return leader_->epoch(); }
  [[nodiscard]] bool may_serve() const { return leader_ && leader_->may_serve(); }
  [[nodiscard]] const Disk& disk() const noexcept { return disk_; }
  /// The last event of a leader, whether it is in etcd or not.
  [[nodiscard]] std::uint64_t applied() const { return service_->engine().applied(); }

 private:
  enum class Next : std::uint8_t { stay, lead, follow, exit, fail };

  void follow();
  void lead();
  void begin();
  /// Ends the service, and the threads of the store, which write what is queued.
  void end();
  void drop();
  /// Ends the present service in order, then continues with `next`.
  void finish(Next next, std::optional<std::string> successor);
  void end_store();
  [[nodiscard]] daemon::service::Service::Settings service_settings() const;
  [[nodiscard]] engine::Start start_of_leader();
  [[nodiscard]] std::unique_ptr<SimRuntime> runtime();
  [[nodiscard]] cluster::Settings member_settings() const;

  // Functions that the service requires of its process
  [[nodiscard]] WallTime wall_now() const override;
  [[nodiscard]] SteadyTime steady_now() const override { return clock_.read(world_.now()); }
  void run_later(Seconds pause, std::function<void()> work) override { after(pause, std::move(work)); }
  void wake_at(SteadyTime when) override;
  void reload(const By& /*by*/) override {}
  void load(const rset::ResourceSet& /*resources*/, const std::string& /*path*/, bool /*force*/,
            const By& /*by*/) override {}

  struct Leads final : daemon::service::Leadership {
    explicit Leads(Node& leader) : node(leader) {}
    [[nodiscard]] std::string name() const override { return node.leader_->name(); }
    [[nodiscard]] proto::topics::Term term() const override {
      return {static_cast<std::uint64_t>(node.leader_->epoch()), node.leader_->cluster()};
    }
    [[nodiscard]] bool may_serve() const override { return node.leader_->may_serve(); }
    void ask_roster(TakeRoster take) override { node.leader_->ask_roster(std::move(take)); }
    void hand_over(const std::string& successor) override;
    void keep_holders(const std::vector<module::PartitionHolder>& holders) override {
      node.leader_->keep_holders(holders);
    }
    [[nodiscard]] std::optional<std::string> stalled() const override { return node.leader_->stalled(); }
    Node& node;
  };
  struct Follows final : daemon::service::Following {
    explicit Follows(Node& follower) : node(follower) {}
    [[nodiscard]] Standing standing() const override {
      return {"standby", node.member_->is_in_touch(node.clock_.boot(node.world_.now()))};
    }
    void ask_roster(TakeRoster take) override { node.coordinator_->ask_roster(std::move(take)); }
    Node& node;
  };

  void after(Seconds pause, std::function<void()> work, bool is_timer = false);
  /// Runs work and its consequences: messages leave, the disk is written, the process continues.
  void run(const std::function<void()>& work);
  void transmit();
  void use_disk();
  void write_disk();
  /// Compares the state after the last committed event with that to which the disk leads, if both have come
  /// to the same event.
  void check_state() const;
  void go_on();

  Leads leads_{*this};
  Follows follows_{*this};
  World& world_;
  Network& network_;
  Etcd& etcd_;
  std::size_t index_;
  Settings settings_;
  Listeners listeners_;
  Disk disk_;
  /// The id of the cluster to which the disk belongs.
  std::optional<std::string> identity_;
  Clock clock_;
  Seconds wall_offset_{};
  std::uint64_t lives_ = 0;
  std::uint64_t phase_ = 0;
  /// The life of the present phase.
  World::Life life_;
  std::unique_ptr<cluster::Member> member_;
  std::unique_ptr<SimTransport> transport_;
  std::unique_ptr<SimLog> log_;
  std::unique_ptr<daemon::log::CurrentLog> current_;
  std::unique_ptr<daemon::log::etcd::Coordinator> coordinator_;
  std::unique_ptr<daemon::log::etcd::LeaderLog> leader_;
  std::unique_ptr<daemon::service::Service> service_;
  World::Life alarm_;
  /// The last event of the start of a leader.
  std::uint64_t started_ = 0;
  bool uses_disk_ = false;
  bool is_finishing_ = false;
  Next after_finish_ = Next::exit;
  Next next_ = Next::stay;
  std::set<ClientId> clients_;
  std::set<ClientId> were_stalled_;
  /// The arrival time of each client's last message: messages keep their order.
  std::map<ClientId, SteadyTime> arrivals_;
};

}  // namespace resourced::sim

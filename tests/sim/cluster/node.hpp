// A node of a simulated cluster: the process of a daemon, which is a standby and a leader in turns as
// daemon/server.cpp and daemon/standby.cpp make it, with its disk and its clocks. Everything between the
// network and the disk is the daemon's own: member, coordinator, log of the leader, service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/cluster/member.hpp"
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
  /// Alike on all nodes of a cluster, apart from the excluded targets and the name.
  struct Settings {
    std::string name;
    Configuration configuration;
    std::size_t journal_max = 0;
    Seconds lease_ttl{};
    cluster::Sequence keep = 0;
    std::size_t part_bytes = 0;
  };
  struct Listeners {
    /// A message leaves the node.
    std::function<void(Node&, ClientId, const proto::Message&)> sent;
    /// The connections of the node have ended.
    std::function<void(Node&)> closed;
    /// The process has ended; `fails` if its store does not fit the cluster.
    std::function<void(Node&, bool fails)> exited;
  };

  Node(World& world, Network& network, Etcd& etcd, std::size_t index, Settings settings, Listeners listeners);

  void start();
  /// Some of what was being written to the disk may be on it.
  void kill();
  /// SIGTERM.
  void stop();
  void set_wall_clock(Seconds offset) { wall_offset_ = offset; }
  /// While the process does not run: takes a copy of another store.
  void restore(const Node& from) {
    disk_ = from.disk_;
    identity_ = from.identity_;
  }

  /// Delivers a message after a delay, to the present connection of a client, which is made if it is not
  /// there. Calls `handled` with the last event of the engine before any message leaves.
  void deliver(ClientId client, proto::Message message, std::function<void(std::uint64_t)> handled);
  void disconnect(ClientId client);
  void stall(ClientId client, bool stalls);
  [[nodiscard]] bool was_stalled(ClientId client) const { return were_stalled_.contains(client); }

  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] const std::string& name() const noexcept { return settings_.name; }
  [[nodiscard]] bool is_up() const noexcept { return service_ != nullptr; }
  /// Counts the times that the node began to lead, to follow, or not to run: connections end with each.
  [[nodiscard]] std::uint64_t phase() const noexcept { return phase_; }
  [[nodiscard]] bool leads() const noexcept { return leader_ != nullptr; }
  /// Of a node that leads.
  [[nodiscard]] cluster::Revision epoch() const { return leader_->epoch(); }
  [[nodiscard]] bool may_serve() const { return leader_ && leader_->may_serve(); }
  [[nodiscard]] const Disk& disk() const noexcept { return disk_; }
  /// The last event of a node that leads, in etcd or not.
  [[nodiscard]] std::uint64_t applied() const { return service_->engine().applied(); }

 private:
  enum class Next : std::uint8_t { stay, lead, follow, exit, fail };

  void follow();
  void lead();
  void begin();
  /// Ends the threads of the store, which write what was queued, and everything else.
  void end();
  void drop();
  /// Ends the present service in good order, then goes on with `next`.
  void finish(Next next, std::optional<std::string> successor);
  void end_store();
  [[nodiscard]] daemon::service::Service::Settings service_settings() const;
  [[nodiscard]] engine::Start start_of_leader();
  [[nodiscard]] std::unique_ptr<SimRuntime> runtime();
  [[nodiscard]] cluster::Settings member_settings() const;

  // The program of the service.
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
  /// Runs work, and what follows from it: messages leave, the disk is written, the process goes on.
  void run(const std::function<void()>& work);
  void transmit();
  void use_disk();
  void write_disk();
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
  /// The cluster that the disk belongs to.
  std::optional<std::string> identity_;
  Clock clock_;
  Seconds wall_offset_{};
  std::uint64_t lives_ = 0;
  std::uint64_t phase_ = 0;
  /// Of the present phase.
  World::Life life_;
  std::unique_ptr<cluster::Member> member_;
  std::unique_ptr<SimTransport> transport_;
  std::unique_ptr<SimLog> log_;
  std::unique_ptr<daemon::log::etcd::Coordinator> coordinator_;
  std::unique_ptr<daemon::log::etcd::LeaderLog> leader_;
  std::unique_ptr<daemon::service::Service> service_;
  World::Life alarm_;
  bool uses_disk_ = false;
  bool is_finishing_ = false;
  Next after_finish_ = Next::exit;
  Next next_ = Next::stay;
  std::set<ClientId> clients_;
  std::set<ClientId> were_stalled_;
  /// When the last message of each arrives: they keep their order.
  std::map<ClientId, SteadyTime> arrivals_;
};

}  // namespace resourced::sim

// Turns the reports of node agents into commands. Keeps which agent speaks for which target, whether the
// target is alive and whether its node matches the inventory; until there is an inventory, builds it from the
// reports. Pure: time is an argument. A caller applies the commands before it asks again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/module/command.hpp"
#include "core/module/module.hpp"
#include "core/nodes/agent_roster.hpp"
#include "core/nodes/discovery.hpp"
#include "core/nodes/health.hpp"
#include "core/nodes/monitor.hpp"
#include "core/nodes/node_report.hpp"
#include "core/nodes/parent.hpp"
#include "core/nodes/presence.hpp"
#include "core/rset/verify.hpp"
#include "core/time.hpp"

namespace resourced::nodes {

using AgentId = AgentRoster::AgentId;
/// Names a connection over which agents speak; several may share one.
using ConnectionId = std::uint64_t;

struct Settings {
  MonitorSettings monitor;
  rset::VerifyOptions verify;
  /// Agents are to count the cores that they may not use themselves.
  bool norestrict = false;
  /// Targets without an agent are lost after `lost_after`, like those whose agent has left.
  bool expect_all = false;
  HealthSettings health = {};

  /// How often an agent should beat: several times before its silence means anything.
  [[nodiscard]] Seconds beat_interval() const noexcept;
  /// Whether the agent counted cores as these settings want it; true if the report does not tell.
  [[nodiscard]] bool wants(const NodeReport& report) const noexcept {
    return report.norestrict.value_or(norestrict) == norestrict;
  }
};

/// News for one agent.
struct AgentNews {
  AgentId agent = 0;
  /// The target that it speaks for; nothing as long as there is no inventory.
  std::optional<text::IdSet::Id> rank;
  /// The target stays down, as the gate requires checks and this agent runs none.
  bool gated = false;
  /// Why it no longer speaks for a target; the agent is forgotten: EEXIST if another agent replaced it,
  /// EINVAL if its target left or its host is unknown, EAGAIN if it is to say hello again.
  std::optional<Error> end;
};

/// A node that is not to be up, as it does not match the inventory or is unhealthy.
struct UnfitNode {
  text::IdSet::Id rank = 0;
  std::string host;
  std::string reason;
  /// It is drained for another reason already, which stays.
  bool stays = false;
};

/// The results of one report, or of deadlines that have passed.
struct Findings {
  /// In order. The module accepts each of them in its present state.
  std::vector<module::Command> commands;
  std::vector<AgentNews> news;
  /// Nodes for which a drain is among the commands, and nodes that stay drained for another reason.
  std::vector<UnfitNode> unfit;
  /// Targets that are online by the reports of their agents, and stay down as these agents run no checks.
  text::IdSet without_checks;
};

class Nodes {
 public:
  /// Watches agents with these settings. Later settings also apply to present agents: settle() then returns
  /// the changes of targets that follow.
  void watch(const Settings& settings);
  /// Requires an inventory.
  [[nodiscard]] Findings settle(const module::Module& module, SteadyTime now);
  /// Nothing where no agents are watched.
  [[nodiscard]] const std::optional<Settings>& settings() const noexcept { return settings_; }
  /// The same. Throws Error ENOSYS where no agents are watched.
  [[nodiscard]] const Settings& watched() const;

  /// Collects agents until they make an inventory. Requires that agents are watched.
  void discover(const DiscoverySettings& settings, RecordedHosts recorded, SteadyTime now);
  /// The state of the discovery, for people; nothing if there is none.
  [[nodiscard]] std::optional<std::string> discovery_progress() const {
    return discovery_ ? std::optional(discovery_->progress()) : std::nullopt;
  }
  /// Hosts for which the discovery does not wait. Without effect after the discovery.
  void exclude(const text::Hostlist& hosts);
  /// The inventory, once the agents that were waited for are there, or their time has passed; then the
  /// discovery is over. Agents then wait for begin().
  [[nodiscard]] std::optional<rset::ResourceSet> discovered(SteadyTime now);

  /// The inventory is known: assigns targets to the agents that have waited. Targets that are online already
  /// stay so for `grace` without an agent.
  [[nodiscard]] Findings begin(const module::Module& module, SteadyTime now, Seconds grace);
  /// The inventory has been replaced: all agents have to say hello again. Online targets go offline if that
  /// takes longer than the grace time.
  [[nodiscard]] Findings begin_again(const module::Module& module, SteadyTime now);
  /// From now on a target is online only if it is available in the enclosing instance, too.
  void enclose(const module::Module& module) { presence_.emplace(module.online()); }
  [[nodiscard]] bool enclosed() const noexcept { return presence_.has_value(); }
  /// These targets, which had left, return and would be online without an enclosing instance. Returns those
  /// that are.
  [[nodiscard]] text::IdSet returned(const text::IdSet& online) {
    return presence_ ? presence_->returned(online) : online;
  }

  /// A new agent, which must not have been here before. The later agent takes the place of the earlier one of
  /// a host with one target. On a host with several targets an agent gets a target without an agent, or else
  /// takes the place of one that is silent or uses the same connection. Throws Error ENOSYS as watched(),
  /// EINVAL for a host that is not in the inventory, EEXIST if no target of the host is free.
  [[nodiscard]] Findings hello(AgentId agent, ConnectionId connection, const NodeReport& report,
                               const module::Module& module, SteadyTime now);
  /// A sign of life. Ignored for an agent that is not known. Constant time.
  void beat(AgentId agent, SteadyTime now);
  /// The result of a check, which is a sign of life too. Ignored for an agent that is not known, or has no
  /// target yet. Throws Error EINVAL if the hello of the agent does not say that it runs checks.
  [[nodiscard]] Findings health(AgentId agent, const HealthReport& report, const module::Module& module,
                                SteadyTime now);
  [[nodiscard]] const Health& health() const noexcept { return health_; }
  /// The target that an agent speaks for.
  [[nodiscard]] std::optional<text::IdSet::Id> rank_of(AgentId agent) const { return roster_.rank_of(agent); }
  /// The targets whose agents are connected.
  [[nodiscard]] const text::IdSet& with_agent() const noexcept { return roster_.targets(); }
  /// An agent has ended in order, or its connection is lost. Ignored for an agent that is not known.
  enum class End { farewell, lost };
  void end(AgentId agent, End end, SteadyTime now);
  /// These targets are offline until their agents say hello again. The caller tells the module.
  void force_down(const text::IdSet& ranks, SteadyTime now);
  /// Drops targets that have left the instance. Returns the news for their agents.
  [[nodiscard]] std::vector<AgentNews> forget(const text::IdSet& ranks);

  /// Applies a change in the enclosing instance. Requires enclose().
  [[nodiscard]] std::vector<module::Command> told(const ParentChange& change, const module::Module& module);

  /// Those of these nodes that do not match the inventory, or are unhealthy. Neither drains an excluded
  /// target, so the caller checks targets here once they are no longer excluded.
  [[nodiscard]] std::vector<UnfitNode> unfit_among(const text::IdSet& ranks,
                                                   const module::Module& module) const;
  /// The same, only those that do not match the inventory.
  [[nodiscard]] std::vector<UnfitNode> mismatched_among(const text::IdSet& ranks,
                                                        const module::Module& module) const;

  /// The commands for deadlines that have passed. `wall` is the same time on the wall clock.
  [[nodiscard]] Findings tick(const module::Module& module, SteadyTime now, WallTime wall);
  /// When discovered() or tick() has something to do, if no agent is heard until then.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

 private:
  struct Agent {
    ConnectionId connection = 0;
    /// Kept while the inventory is not known.
    std::optional<NodeReport> waiting;
  };

  /// Asserts that each agent speaks for a target or waits for the inventory.
  void check_agents() const;
  void admit(AgentId agent, const NodeReport& report, const module::Module& module, SteadyTime now,
             Findings& findings);
  /// The commands of a batch, with those of the gate, the enclosing instance and drains that end.
  void carry_out(MonitorBatch batch, const module::Module& module, Findings& findings);
  void end_drains(const text::IdSet& ranks, const module::Module& module, Findings& findings) const;
  /// Brings up those of `held` that the gate keeps down no longer, and ends the drains of those of `drained`
  /// that are well. Those that flap are drained for that before, and stay so.
  void bring_back(const text::IdSet& held, const text::IdSet& drained, const module::Module& module,
                  Findings& findings);
  void verify(text::IdSet::Id rank, const NodeReport& report, const module::Module& module,
              Findings& findings);

  std::optional<Settings> settings_;
  Monitor monitor_;
  Health health_;
  std::optional<Presence> presence_;
  AgentRoster roster_;
  std::optional<Discovery> discovery_;
  /// In the order of their ids, which is that of their arrival.
  std::map<AgentId, Agent> agents_;
  /// Agents that wait for the inventory, by host.
  std::unordered_map<std::string, AgentId> waiting_;
  /// The last reports that do not fit the inventory, and those of targets that are excluded.
  std::unordered_map<text::IdSet::Id, NodeReport> doubtful_;
};

}  // namespace resourced::nodes

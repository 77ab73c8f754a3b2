// Turns the reports of node agents into commands. Keeps the agent of each target, whether the target is alive
// and whether its node matches the inventory; until there is an inventory, builds it from the reports. Pure:
// time is an argument. A caller applies the commands before it calls again.
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
#include "core/nodes/rivals.hpp"
#include "core/rset/verify.hpp"
#include "core/time.hpp"

namespace resourced::nodes {

using AgentId = AgentRoster::AgentId;

struct Settings {
  MonitorSettings monitor;
  rset::VerifyOptions verify;
  /// Whether agents should count the cores that they may not use themselves.
  bool norestrict = false;
  /// Whether targets without an agent are lost after `lost_after`, like those whose agent has left.
  bool expect_all = false;
  HealthSettings health = {};

  /// Returns the interval of an agent's beats: several are sent before its silence has an effect.
  [[nodiscard]] Seconds beat_interval() const noexcept;
  /// Whether the agent counted cores as these settings require; true if the report does not tell.
  [[nodiscard]] bool wants(const NodeReport& report) const noexcept {
    return report.norestrict.value_or(norestrict) == norestrict;
  }
};

/// A message for one agent.
struct AgentNews {
  AgentId agent = 0;
  /// The target of the agent; unset while there is no inventory.
  std::optional<text::IdSet::Id> rank;
  /// Whether the target stays down, because the gate requires checks and this agent runs none.
  bool gated = false;
  /// Why the agent has no target any more and is forgotten: EEXIST if another agent replaced it, EINVAL if
  /// its target left or its host is unknown, EAGAIN if it should say hello again.
  std::optional<Error> end;
};

/// A node that should not be up, because it does not match the inventory or is unhealthy.
struct UnfitNode {
  text::IdSet::Id rank = 0;
  std::string host;
  std::string reason;
  /// Whether the node is already drained for another reason, which stays.
  bool stays = false;
  /// Time since which its checks fail; unset for a node that does not match the inventory.
  std::optional<SteadyTime> since = std::nullopt;
};

/// The beginning or the end of a rivalry: two agents that take turns for a target (Rivals).
struct Rivalry {
  std::string host;
  /// The origins of both agents, for people; empty at the end.
  std::string origins;
};

/// The results of one report, or of deadlines that have passed.
struct Findings {
  /// Commands, in order. The module accepts each of them in its present state.
  std::vector<module::Command> commands;
  std::vector<AgentNews> news;
  /// Nodes for which a drain is among the commands, and nodes that stay drained for another reason.
  std::vector<UnfitNode> unfit;
  /// Targets that are online by the reports of their agents, and stay down because these agents run no
  /// checks.
  text::IdSet without_checks;
  std::vector<Rivalry> rivalries;
};

class Nodes {
 public:
  /// Watches agents with these settings, which also apply to present agents: settle() then returns the
  /// resulting changes of targets.
  void watch(const Settings& settings);
  /// Returns the changes after new settings. Requires an inventory.
  [[nodiscard]] Findings settle(const module::Module& module, SteadyTime now);
  /// Returns the settings; nothing if no agents are watched.
  [[nodiscard]] const std::optional<Settings>& settings() const noexcept { return settings_; }
  /// Returns the settings. Throws Error ENOSYS if no agents are watched.
  [[nodiscard]] const Settings& watched() const;

  /// Collects agents until they make an inventory. Requires that agents are watched.
  void discover(const DiscoverySettings& settings, RecordedHosts recorded, SteadyTime now);
  /// Returns the state of the discovery, for people; nothing if there is none.
  [[nodiscard]] std::optional<std::string> discovery_progress() const {
    return discovery_ ? std::optional(discovery_->progress()) : std::nullopt;
  }
  /// Sets hosts for which the discovery does not wait. No effect after the discovery.
  void exclude(const text::Hostlist& hosts);
  /// Returns the inventory, once the expected agents have reported, or their time has passed; then the
  /// discovery is over. Agents then wait for begin().
  [[nodiscard]] std::optional<rset::ResourceSet> discovered(SteadyTime now);

  /// Call when the inventory is known: assigns targets to the agents that have waited. Targets that are
  /// online already stay so for `grace` without an agent.
  [[nodiscard]] Findings begin(const module::Module& module, SteadyTime now, Seconds grace);
  /// Call when the inventory was replaced: all agents have to say hello again. Online targets go offline if
  /// that takes longer than the grace time.
  [[nodiscard]] Findings begin_again(const module::Module& module, SteadyTime now);
  /// Makes the online state depend on the enclosing instance, too: from now on a target is online only if it
  /// is available there.
  void enclose(const module::Module& module) { presence_.emplace(module.online()); }
  [[nodiscard]] bool enclosed() const noexcept { return presence_.has_value(); }
  /// Call when targets return that had left, and would be online without an enclosing instance. Returns those
  /// that are online.
  [[nodiscard]] text::IdSet returned(const text::IdSet& online) {
    return presence_ ? presence_->returned(online) : online;
  }

  /// Admits a new agent, with an id that was not used before. On a host with one target it replaces the
  /// earlier agent. On a host with several targets it gets a target without an agent, or else replaces an
  /// agent that is silent or uses the same connection. Throws Error ENOSYS as watched(), EINVAL for a host
  /// that is not in the inventory, EEXIST if no target of the host is free. Targets whose agents are rivals
  /// return to service by no report of theirs.
  [[nodiscard]] Findings hello(AgentId agent, const Rivals::Speaker& speaker, const NodeReport& report,
                               const module::Module& module, SteadyTime now);
  /// Takes a sign of life. Ignored for an unknown agent. Constant time.
  void beat(AgentId agent, SteadyTime now);
  /// Takes the result of a check, which is a sign of life too. Ignored for an agent that is unknown, or has
  /// no target yet. Throws Error EINVAL if the hello of the agent does not say that it runs checks.
  [[nodiscard]] Findings health(AgentId agent, const HealthReport& report, const module::Module& module,
                                SteadyTime now);
  [[nodiscard]] const Health& health() const noexcept { return health_; }
  [[nodiscard]] const Rivals& rivals() const noexcept { return rivals_; }
  /// Returns the target of an agent.
  [[nodiscard]] std::optional<text::IdSet::Id> rank_of(AgentId agent) const { return roster_.rank_of(agent); }
  /// Returns the boot of a target's node, as its connected agent reports it; empty if none does.
  [[nodiscard]] std::string boot_id(text::IdSet::Id rank) const;
  /// The targets whose agents are connected.
  [[nodiscard]] const text::IdSet& with_agent() const noexcept { return roster_.targets(); }
  /// The end of an agent: clean, or by a lost connection. Ignored for an unknown agent.
  enum class End { farewell, lost };
  void end(AgentId agent, End end, SteadyTime now);
  /// Makes targets offline until their agents say hello again. The caller informs the module.
  void force_down(const text::IdSet& ranks, SteadyTime now);
  /// Removes targets that have left the instance. Returns the messages for their agents.
  [[nodiscard]] std::vector<AgentNews> forget(const text::IdSet& ranks);

  /// Applies a change in the enclosing instance. Requires enclose().
  [[nodiscard]] std::vector<module::Command> told(const ParentChange& change, const module::Module& module);

  /// Returns those of these nodes that do not match the inventory, or are unhealthy. Excluded targets are not
  /// drained for it, so the caller checks targets here once they are no longer excluded.
  [[nodiscard]] std::vector<UnfitNode> unfit_among(const text::IdSet& ranks,
                                                   const module::Module& module) const;
  /// Returns only those that do not match the inventory.
  [[nodiscard]] std::vector<UnfitNode> mismatched_among(const text::IdSet& ranks,
                                                        const module::Module& module) const;
  /// Returns the targets among `ranks` that the gate keeps offline, as their agents run no checks.
  [[nodiscard]] text::IdSet without_checks(const text::IdSet& ranks, const module::Module& module) const;

  /// Returns the commands for deadlines that have passed. `wall` is the same time on the wall clock.
  [[nodiscard]] Findings tick(const module::Module& module, SteadyTime now, WallTime wall);
  /// Returns when discovered() or tick() has something to do, if no agent is heard until then.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

 private:
  struct Agent {
    Rivals::Speaker speaker;
    /// The report, kept while the inventory is unknown.
    std::optional<NodeReport> waiting;
    std::string boot_id = {};
  };

  /// Asserts that each agent has a target or waits for the inventory.
  void check_agents() const;
  void admit(AgentId agent, const NodeReport& report, const module::Module& module, SteadyTime now,
             Findings& findings);
  /// Adds the commands of a batch, with those of the gate, the enclosing instance and ending drains.
  void carry_out(MonitorBatch batch, const module::Module& module, Findings& findings);
  void end_drains(const text::IdSet& ranks, const module::Module& module, Findings& findings) const;
  /// Brings up those of `held` that the gate no longer keeps down, and ends the drains of those of `drained`
  /// that are well. Those that flap are drained for that first, and stay so.
  void bring_back(const text::IdSet& held, const text::IdSet& drained, const module::Module& module,
                  Findings& findings);
  void verify(text::IdSet::Id rank, const NodeReport& report, const module::Module& module,
              Findings& findings);
  /// Returns to service those of these targets whose agents are heard and report them well.
  void bring_back_heard(const text::IdSet& ranks, const module::Module& module, SteadyTime now,
                        Findings& findings);
  void end_rivalries(const module::Module& module, SteadyTime now, Findings& findings);

  std::optional<Settings> settings_;
  Monitor monitor_;
  Health health_;
  std::optional<Presence> presence_;
  AgentRoster roster_;
  Rivals rivals_;
  std::optional<Discovery> discovery_;
  /// Agents in the order of their ids, which is that of their arrival.
  std::map<AgentId, Agent> agents_;
  /// Agents that wait for the inventory, by host.
  std::unordered_map<std::string, AgentId> waiting_;
  /// The last reports that do not match the inventory, and those of excluded targets.
  std::unordered_map<text::IdSet::Id, NodeReport> doubtful_;
};

}  // namespace resourced::nodes

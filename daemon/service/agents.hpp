// The node agents: `resource.agent` as streams, their beats, and what follows from hearing them, or not.
// Until the inventory is known they are what it is discovered from. Whether a target is alive is decided in
// core/module/monitor.hpp; this knows the requests of agents, and carries the findings to the engine.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/module/agent_roster.hpp"
#include "core/module/discovery.hpp"
#include "core/module/monitor.hpp"
#include "core/module/node_report.hpp"
#include "core/module/presence.hpp"
#include "core/rset/verify.hpp"
#include "daemon/service/executor.hpp"
#include "proto/request_key.hpp"

namespace resourced::daemon::service {

class Agents {
 public:
  using AgentId = AgentRoster::AgentId;

  struct Settings {
    MonitorSettings monitor;
    VerifyOptions verify;
    /// Agents are to count the cores that they may not use themselves.
    bool norestrict = false;
    /// Targets without an agent are lost after a time, like those whose agent has gone.
    bool expect_all = false;
  };
  Agents(Executor& executor, const Settings& settings);

  /// New times, for present agents too.
  void configure(const Settings& settings);

  /// What agents show is not all that counts. `presence` must outlive the agents.
  void share(Presence& presence) noexcept { presence_ = &presence; }

  /// Whether the agent counted cores as the settings want it; true if the report does not tell.
  [[nodiscard]] bool wants(const NodeReport& report) const noexcept {
    return report.norestrict.value_or(settings_.norestrict) == settings_.norestrict;
  }
  [[nodiscard]] bool norestrict() const noexcept { return settings_.norestrict; }

  /// How often an agent should beat, in seconds: several times before its silence means anything.
  [[nodiscard]] double interval() const noexcept;

  /// Collects agents until there is an inventory, and gives it to `define` then.
  void discover(const DiscoverySettings& settings, RecordedHosts recorded, double now,
                std::function<void(const ResourceSet&)> define);
  /// Hosts for which the discovery does not wait. After it, nothing.
  void exclude(const Hostlist& hosts);
  /// The inventory is known. What became of the agents that waited for it.
  struct Placed {
    proto::RequestKey request;
    std::optional<IdSet::Id> rank;
    std::optional<Error> refused;
  };
  [[nodiscard]] std::vector<Placed> place_waiting(double now);

  struct Welcome {
    AgentId agent = 0;
    /// Nothing as long as the inventory is not known.
    std::optional<IdSet::Id> rank;
    /// The request of an agent whose place this one has taken.
    std::optional<proto::RequestKey> replaced;
  };
  /// The later agent replaces the earlier one of a host with one target. On a host with several targets an
  /// agent gets a target without an agent, or else replaces an agent that is silent or uses the same
  /// connection. Throws Error EINVAL for a host that is not in the inventory, EEXIST if no target of the host
  /// is free.
  Welcome hello(proto::RequestKey request, const NodeReport& report, double now);
  /// A sign of life. One that is not here is passed over.
  void beat(AgentId agent, double now);

  /// These targets are offline until their agents say hello again. The caller tells the engine.
  void force_down(const IdSet& ranks, double now);

  enum class End { farewell, lost };
  /// An agent's request is no more. An agent that was retired is passed over.
  void end(AgentId agent, End end, double now);

  /// Reasons to drain targets that are no longer excluded: their agents found something else than the
  /// inventory says. As long as a target is excluded no mismatch drains it, so this comes after.
  [[nodiscard]] std::vector<std::pair<IdSet::Id, std::string>> verify_included(const IdSet& ranks) const;

  /// These targets are no more. Returns the requests of the agents that spoke for them.
  [[nodiscard]] std::vector<proto::RequestKey> forget(const IdSet& ranks);

  /// The inventory is another. Its targets that are online have the grace time for their agents to say hello
  /// again. Returns the requests of all agents: none of them speaks for a target any more.
  [[nodiscard]] std::vector<proto::RequestKey> begin_again(double now);

  /// Does what is due.
  void tick(double now);
  /// When there is something to do if nothing is heard until then.
  [[nodiscard]] std::optional<double> next_deadline() const;

  [[nodiscard]] std::size_t count() const noexcept { return agents_.size(); }

 private:
  struct Agent {
    proto::RequestKey request;
    /// Kept while the inventory is not known.
    std::optional<NodeReport> waiting;
  };

  struct Place {
    IdSet::Id rank = 0;
    std::optional<proto::RequestKey> replaced;
  };
  Place admit(AgentId agent, proto::ClientId client, const NodeReport& report, double now);
  void verify(IdSet::Id rank, const NodeReport& report);
  /// Takes out an agent that speaks for nobody any more. Returns its request.
  proto::RequestKey retire(AgentId agent);

  Executor& executor_;
  Settings settings_;
  Monitor monitor_;
  Presence* presence_ = nullptr;
  AgentRoster roster_;
  std::optional<Discovery> discovery_;
  std::function<void(const ResourceSet&)> define_;
  /// In the order of their hellos.
  std::map<AgentId, Agent> agents_;
  /// Who waits for the inventory, by host.
  std::unordered_map<std::string, AgentId> waiting_;
  AgentId last_id_ = 0;
  /// The last reports that do not fit the inventory, and those of targets that are excluded.
  std::unordered_map<IdSet::Id, NodeReport> doubtful_;
};

}  // namespace resourced::daemon::service

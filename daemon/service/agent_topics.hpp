// The topics of node agents, and what follows from their inventory and their silence. Without agents, where
// every target is always online, each of them is refused.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/module/command.hpp"
#include "core/module/presence.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "daemon/service/agents.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/registry.hpp"

namespace resourced::daemon::service {

class AgentTopics {
 public:
  /// `wake_at` asks for on_time() at that uptime; a later call takes the place of an earlier one.
  AgentTopics(Executor& executor, Requests& requests, const std::optional<Agents::Settings>& settings,
              std::function<double()> uptime, std::function<void(double)> wake_at);

  void hello(const Call& call);
  void beat(const Call& call);

  void configure(const Agents::Settings& settings);
  /// The inventory is what node agents report. `define` takes it to the engine.
  void discover(const DiscoverySettings& settings, RecordedHosts recorded,
                std::function<void(const ResourceSet&)> define);
  /// Hosts for which the discovery does not wait; nothing where there is none.
  void exclude_from_discovery(const Hostlist& hosts);
  /// What agents show is not all that counts. `presence` must outlive this.
  void share(Presence& presence);

  /// The inventory is known: agents that waited for it get their targets.
  void on_defined();
  /// Does what is due.
  void on_time();
  /// Has on_time() called when there is something due. To be called after everything that agents may change.
  void schedule();

  /// The drains that belong to a reload after which `exclude` is excluded: targets that return, although
  /// their agents found something else than the inventory says.
  [[nodiscard]] std::vector<ReloadCommand::Drain> verify_included(const IdSet& exclude) const;
  /// These targets are offline until their agents say hello again. The caller tells the engine.
  void force_down(const IdSet& ranks);
  /// These targets have left for good: the streams of their agents are ended.
  void end(const IdSet& ranks);
  /// Another R was loaded: all agents are to say hello again.
  void begin_again();
  /// An agent's request is no more.
  void release(const streams::NodeAgent& gone, End end);

 private:
  Agents& agents();

  Executor& executor_;
  Requests& requests_;
  std::function<double()> uptime_;
  std::function<void(double)> wake_at_;
  std::optional<Agents> agents_;
  /// When on_time() was asked for last.
  std::optional<double> awake_at_;
};

}  // namespace resourced::daemon::service

// Assigns targets to agents. Gives each agent a rank of its host, and distinguishes a new agent from an
// earlier one whose lost connection is noticed late. The caller keeps the connections, the monitor the times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::nodes {

class AgentRoster {
 public:
  /// Id of an agent's stream; the caller chooses it and never uses it again.
  using AgentId = std::uint64_t;

  struct Admission {
    text::IdSet::Id rank = 0;
    /// The agent that this one has replaced, which has no target any more.
    std::optional<AgentId> replaced;
  };

  /// Whether a later agent may replace the present agent of a rank.
  using MayReplace = std::function<bool(AgentId, text::IdSet::Id)>;

  /// Admits an agent of a host. It replaces the agent of the host's only rank. If several ranks share the
  /// host, it gets the lowest rank without an agent, or else the lowest one for whose agent `may_replace`
  /// returns true. Throws Error EINVAL if the host is not in the inventory, EEXIST for an agent that was
  /// admitted before, or if no rank of the host is free.
  Admission admit(AgentId agent, const std::string& hostname, const rset::ResourceSet& inventory,
                  const MayReplace& may_replace);

  /// Returns the rank of an agent; nothing for one that was replaced or never admitted.
  [[nodiscard]] std::optional<text::IdSet::Id> rank_of(AgentId agent) const;
  [[nodiscard]] std::optional<AgentId> agent_of(text::IdSet::Id rank) const;

  /// Removes an agent. Returns the rank that has no agent now, if it had one.
  std::optional<text::IdSet::Id> remove(AgentId agent);
  /// Removes the agent of a target that has left the instance, and returns it.
  std::optional<AgentId> forget(text::IdSet::Id rank);

  [[nodiscard]] std::size_t size() const noexcept { return ranks_.size(); }
  /// The ranks that have an agent.
  [[nodiscard]] const text::IdSet& targets() const noexcept { return targets_; }

 private:
  /// Asserts that each agent has one rank, and that each of these ranks has one agent.
  void check_pairs() const;

  std::unordered_map<AgentId, text::IdSet::Id> ranks_;
  std::unordered_map<text::IdSet::Id, AgentId> agents_;
  /// The keys of agents_, kept so that a request for them takes no time for each agent.
  text::IdSet targets_;
};

}  // namespace resourced::nodes

#include "core/module/agent_roster.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced {

AgentRoster::Admission AgentRoster::admit(AgentId agent, const std::string& hostname,
                                          const ResourceSet& inventory) {
  if (ranks_.contains(agent)) throw Error(EEXIST, fmt::format("the agent on {} is here already", hostname));
  const auto lowest = inventory.rank_of(hostname);
  if (!lowest) throw Error(EINVAL, fmt::format("host {} is not in the inventory", hostname));

  Admission admission{*lowest, std::nullopt};
  for (std::uint32_t ordinal = 0; const auto rank = inventory.rank_of(hostname, ordinal); ++ordinal) {
    if (agents_.contains(*rank)) continue;
    admission.rank = *rank;
    break;
  }
  if (admission.replaced = agent_of(admission.rank); admission.replaced) ranks_.erase(*admission.replaced);
  ranks_[agent] = admission.rank;
  agents_[admission.rank] = agent;
  return admission;
}

std::optional<IdSet::Id> AgentRoster::rank_of(AgentId agent) const {
  const auto found = ranks_.find(agent);
  return found == ranks_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<AgentRoster::AgentId> AgentRoster::agent_of(IdSet::Id rank) const {
  const auto found = agents_.find(rank);
  return found == agents_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<IdSet::Id> AgentRoster::remove(AgentId agent) {
  const auto rank = rank_of(agent);
  if (!rank) return std::nullopt;
  ranks_.erase(agent);
  agents_.erase(*rank);
  return rank;
}

std::optional<AgentRoster::AgentId> AgentRoster::forget(IdSet::Id rank) {
  const auto agent = agent_of(rank);
  if (!agent) return std::nullopt;
  agents_.erase(rank);
  ranks_.erase(*agent);
  return agent;
}

}  // namespace resourced

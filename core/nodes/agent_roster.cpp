#include "core/nodes/agent_roster.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/invariant.hpp"

namespace resourced::nodes {

using text::IdSet;

AgentRoster::Admission AgentRoster::admit(AgentId agent, const std::string& hostname,
                                          const rset::ResourceSet& inventory, const MayReplace& may_replace) {
  if (ranks_.contains(agent))
    throw Error(EEXIST, fmt::format("the agent on {} has said hello already", hostname));
  std::optional<IdSet::Id> free;
  std::optional<IdSet::Id> given_up;
  std::uint32_t count = 0;
  for (; const auto rank = inventory.rank_of(hostname, count); ++count) {
    const auto present = agent_of(*rank);
    if (!present) {
      free = rank;
      break;
    }
    if (!given_up && may_replace(*present, *rank)) given_up = rank;
  }
  if (!free && count == 0) throw Error(EINVAL, fmt::format("host {} is not in the inventory", hostname));
  if (!free && !given_up && count == 1) given_up = inventory.rank_of(hostname);
  if (!free && !given_up) {
    throw Error(EEXIST, fmt::format("each of the {} targets of host {} has an agent", count, hostname));
  }

  Admission admission{free ? *free : *given_up, std::nullopt};
  if (admission.replaced = agent_of(admission.rank); admission.replaced) ranks_.erase(*admission.replaced);
  ranks_[agent] = admission.rank;
  agents_[admission.rank] = agent;
  targets_.insert(admission.rank);
  check_pairs();
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
  targets_.erase(*rank);
  check_pairs();
  return rank;
}

std::optional<AgentRoster::AgentId> AgentRoster::forget(IdSet::Id rank) {
  const auto agent = agent_of(rank);
  if (!agent) return std::nullopt;
  agents_.erase(rank);
  ranks_.erase(*agent);
  targets_.erase(rank);
  check_pairs();
  return agent;
}

void AgentRoster::check_pairs() const { RESOURCED_INVARIANT(ranks_.size() == agents_.size()); }

}  // namespace resourced::nodes

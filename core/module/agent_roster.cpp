#include "core/module/agent_roster.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/targets.hpp"
#include "core/text/hostlist.hpp"

namespace resourced {

AgentRoster::Admission AgentRoster::admit(AgentId agent, const std::string& hostname,
                                          const ResourceSet& inventory) {
  if (ranks_.contains(agent)) throw Error(EEXIST, fmt::format("the agent on {} is here already", hostname));
  const auto lowest = inventory.rank_of(hostname);
  if (!lowest) throw Error(EINVAL, fmt::format("host {} is not in the inventory", hostname));

  Admission admission{*lowest, std::nullopt};
  if (agents_.contains(*lowest) && inventory.hosts_repeat()) {
    Hostlist host;
    host.append(hostname);
    IdSet free = ranks_of_hosts(host, inventory);
    for (auto taken = free.at_or_after(0); taken && agents_.contains(*taken);) {
      free.erase(*taken);
      taken = free.at_or_after(*taken);
    }
    if (!free.empty()) admission.rank = free.first();
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

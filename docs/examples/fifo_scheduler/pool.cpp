#include "docs/examples/fifo_scheduler/pool.hpp"

#include <algorithm>
#include <cstddef>
#include <set>

#include "core/error.hpp"
#include "core/feasibility/feasibility.hpp"
#include "core/rset/operations.hpp"
#include "docs/examples/fifo_scheduler/request.hpp"

namespace resourced::fifo {

using rset::ResourceGroup;
using rset::ResourceSet;
using text::IdSet;

namespace {

IdSet first_ids(const IdSet& ids, std::uint64_t count) {
  IdSet first;
  ids.for_each_range([&](IdSet::Range range) {
    if (count == 0) return;
    const std::uint64_t taken = std::min<std::uint64_t>(count, range.last - range.first + std::uint64_t{1});
    first.insert(range.first, static_cast<IdSet::Id>(range.first + taken - 1));
    count -= taken;
  });
  return first;
}

}  // namespace

void Pool::acquire(const ResourceSet& inventory, const IdSet& up) {
  std::vector<Rank> ranks;
  inventory.ranks().for_each([&](Rank rank) { ranks.push_back(rank); });
  const auto for_each_host = [&](const auto& f) {
    std::size_t i = 0;
    inventory.nodelist().for_each([&](std::string_view host) { f(ranks[i++], std::string(host)); });
  };

  // Several ranks may share a host: a rank whose host is the same keeps its ordinal.
  std::map<Rank, Target> targets;
  std::set<Target> used;
  for_each_host([&](Rank rank, const std::string& host) {
    const auto before = targets_.find(rank);
    if (before == targets_.end() || before->second.first != host) return;
    targets.insert(*before);
    used.insert(before->second);
  });
  std::map<std::string, unsigned> next;
  for_each_host([&](Rank rank, const std::string& host) {
    if (targets.contains(rank)) return;
    Target target{host, next[host]++};
    while (used.contains(target)) target.second = next[host]++;
    targets.emplace(rank, std::move(target));
  });

  targets_ = std::move(targets);
  inventory_ = inventory;
  up_ = up;
}

void Pool::shrink(const IdSet& ranks) {
  set_down(ranks);
  inventory_.remove_ranks(ranks);
  std::erase_if(targets_, [&](const auto& target) { return ranks.contains(target.first); });
}

std::vector<Pool::Node> Pool::all_nodes(const IdSet& ranks) const {
  std::vector<Node> nodes;
  for (const ResourceGroup& group : inventory_.groups())
    (group.ranks & ranks).for_each([&](Rank rank) { nodes.push_back({rank, {group.cores, group.gpus}}); });
  std::ranges::sort(nodes, {}, &Node::rank);
  return nodes;
}

std::vector<Pool::Node> Pool::free_nodes(const Request& request, const IdSet& avoided) const {
  const bool whole = std::ranges::any_of(request.demand.nodes, &feasibility::NodeDemand::whole);
  std::vector<Node> nodes;
  for (Node& node : all_nodes(request.constraint.match(inventory_) & (up_ - avoided))) {
    if (const auto taken = taken_.find(targets_.at(node.rank)); taken != taken_.end()) {
      if (whole) continue;
      node.has.cores -= taken->second.cores;
      node.has.gpus -= taken->second.gpus;
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

namespace {

template <class Nodes>
std::vector<feasibility::NodeKind> sizes_of(const Nodes& nodes) {
  std::vector<feasibility::NodeKind> sizes;
  sizes.reserve(nodes.size());
  for (const auto& node : nodes) sizes.push_back({1, node.has.cores.count(), node.has.gpus.count()});
  return sizes;
}

/// The reason of a denial: R gives each target of an allocation one core or more (RFC 20).
constexpr const char* gpus_alone = "an R has no gpus without cores: ask for a core with them";

bool has_gpus_alone(const std::vector<Share>& shares) {
  return std::any_of(shares.begin(), shares.end(),
                     [](const Share& share) { return !share.whole && share.cores == 0; });
}

}  // namespace

std::string Pool::denial(const Request& request) const {
  const feasibility::Feasibility answer =
      feasibility::check_feasibility(request.resources, request.constraint, inventory_);
  if (!answer.feasible()) return answer.reason;
  // Deny a request that cannot be placed when all is free: it would block the queue for ever.
  const auto shares = place(sizes_of(all_nodes(request.constraint.match(inventory_))), request.demand);
  if (!shares) return "there are too many ways to place it";
  return has_gpus_alone(*shares) ? gpus_alone : "";
}

bool Pool::expired(WallTime now) const {
  return inventory_.expiration() != WallTime{} && inventory_.expiration() <= now;
}

WallTime Pool::end_of(const Request& request, WallTime now) const {
  const WallTime last = inventory_.expiration() == WallTime{} ? WallTime::max() : inventory_.expiration();
  return request.duration > Seconds(0) ? std::min(last, now + request.duration) : last;
}

IdSet Pool::drained_before(WallTime end) const {
  IdSet ranks;
  for (const client::ScheduledDrain& drain : scheduled_)
    if (drain.from < end) ranks |= drain.ranks;
  return ranks;
}

bool Pool::waits_for_drain(const Request& request, WallTime now) const {
  const auto fits = [&](const IdSet& avoided) {
    return place(sizes_of(free_nodes(request, avoided)), request.demand).has_value();
  };
  return fits({}) && !fits(drained_before(end_of(request, now)));
}

std::optional<ResourceSet> Pool::allocate(JobId id, const Request& request, WallTime now) {
  if (expired(now)) return std::nullopt;
  const WallTime end = end_of(request, now);
  const std::vector<Node> nodes = free_nodes(request, drained_before(end));
  const std::optional<std::vector<Share>> shares = place(sizes_of(nodes), request.demand);
  if (!shares) return std::nullopt;
  if (has_gpus_alone(*shares)) throw Error(EINVAL, gpus_alone);

  std::vector<ResourceGroup> groups;
  IdSet ranks;
  for (const Share& share : *shares) {
    const auto& [rank, has] = nodes[share.node];
    groups.push_back({{rank},
                      share.whole ? has.cores : first_ids(has.cores, share.cores),
                      share.whole ? has.gpus : first_ids(has.gpus, share.gpus)});
    ranks.insert(rank);
  }
  // The intersection keeps the properties and the expiration of these targets.
  const ResourceSet chosen(std::move(groups), inventory_.hosts(ranks));
  ResourceSet allocation = intersect(inventory_, chosen).without_local_properties();
  allocation.set_nslots(request.slots);
  allocation.set_starttime(now);
  if (request.duration > Seconds(0) &&
      (inventory_.expiration() == WallTime{} || end < inventory_.expiration()))
    allocation.set_expiration(end);
  recover(id, allocation);
  return allocation;
}

void Pool::recover(JobId id, const ResourceSet& allocation) {
  if (holds(id)) return;
  for (const ResourceGroup& group : allocation.groups()) {
    group.ranks.for_each([&](Rank rank) {
      const std::string host = allocation.host(rank);
      const auto known = targets_.find(rank);
      const bool is_there = known != targets_.end() && known->second.first == host;
      hold(id, is_there ? known->second : Target{host, 0}, {group.cores, group.gpus});
    });
  }
}

void Pool::hold(JobId id, const Target& target, const Resources& part) {
  held_[id].emplace_back(target, part);
  taken_[target].cores |= part.cores;
  taken_[target].gpus |= part.gpus;
}

std::vector<Pool::JobId> Pool::jobs() const {
  std::vector<JobId> ids;
  for (const auto& [id, parts] : held_) ids.push_back(id);
  return ids;
}

bool Pool::release(JobId id) {
  const auto job = held_.find(id);
  if (job == held_.end()) return false;
  for (const auto& [target, part] : job->second) give_back(target, part);
  held_.erase(job);
  return true;
}

void Pool::release(JobId id, const IdSet& ranks) {
  const auto job = held_.find(id);
  if (job == held_.end()) return;
  std::set<Target> freed;
  ranks.for_each([&](Rank rank) {
    if (const auto target = targets_.find(rank); target != targets_.end()) freed.insert(target->second);
  });
  std::erase_if(job->second, [&](const auto& held) {
    if (!freed.contains(held.first)) return false;
    give_back(held.first, held.second);
    return true;
  });
  if (job->second.empty()) held_.erase(job);
}

void Pool::give_back(const Target& target, const Resources& part) {
  const auto taken = taken_.find(target);
  taken->second.cores -= part.cores;
  taken->second.gpus -= part.gpus;
  if (taken->second.cores.empty() && taken->second.gpus.empty()) taken_.erase(taken);
}

}  // namespace resourced::fifo

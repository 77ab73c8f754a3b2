#include "core/module/rank_map.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace resourced::module {

using rset::ResourceSet;
using text::IdSet;

namespace {

std::vector<std::pair<IdSet::Id, std::string>> targets_of(const ResourceSet& set) {
  std::vector<std::pair<IdSet::Id, std::string>> targets;
  targets.reserve(set.nodelist().size());
  set.ranks().for_each([&](IdSet::Id rank) { targets.emplace_back(rank, std::string()); });
  std::size_t position = 0;
  set.nodelist().for_each([&](std::string_view host) { targets[position++].second = host; });
  return targets;
}

}  // namespace

RankMap::RankMap(const ResourceSet& from, const ResourceSet& to) {
  if (from.ranks() == to.ranks() && from.nodelist() == to.nodelist()) {
    same_ = from.ranks();
    return;
  }
  // As at the first start on an empty log.
  if (from.empty() || to.empty()) return;
  const auto before = targets_of(from);
  const auto after = targets_of(to);
  // Both lists are in rank order.
  for (auto a = before.begin(), b = after.begin(); a != before.end() && b != after.end();) {
    if (a->first == b->first && a->second == b->second) same_.insert(a->first);
    if (a->first <= b->first) {
      const IdSet::Id rank = a->first;
      ++a;
      if (b->first == rank) ++b;
    } else {
      ++b;
    }
  }
  std::unordered_map<std::string, std::vector<IdSet::Id>> free;
  for (auto target = after.rbegin(); target != after.rend(); ++target) {
    if (!same_.contains(target->first)) free[target->second].push_back(target->first);
  }
  for (const auto& [rank, host] : before) {
    if (same_.contains(rank)) continue;
    const auto found = free.find(host);
    if (found == free.end() || found->second.empty()) continue;
    moved_.emplace(rank, found->second.back());
    found->second.pop_back();
  }
}

RankMap RankMap::by_name(const ResourceSet& from, const ResourceSet& to) {
  if (!from.hosts_repeat() && !to.hosts_repeat()) return {from, to};
  RankMap map;
  for (const auto& [rank, host] : targets_of(from)) {
    const auto there = to.rank_of(host, from.ordinal_of(rank));
    if (there == rank) map.same_.insert(rank);
    if (there && *there != rank) map.moved_.emplace(rank, *there);
  }
  return map;
}

IdSet RankMap::operator()(const IdSet& ranks) const {
  IdSet there = ranks & same_;
  if (moved_.empty()) return there;
  (ranks - same_).for_each([&](IdSet::Id rank) {
    if (const auto found = moved_.find(rank); found != moved_.end()) there.insert(found->second);
  });
  return there;
}

ResourceSet renumbered(const ResourceSet& resources, const RankMap& map, const ResourceSet& targets) {
  std::vector<rset::ResourceGroup> groups = resources.groups();
  for (rset::ResourceGroup& group : groups) group.ranks = map(group.ranks);
  std::erase_if(groups, [](const rset::ResourceGroup& group) { return group.ranks.empty(); });
  ResourceSet moved(std::move(groups), targets.hosts(map(resources.ranks())));
  for (const auto& [name, ranks] : resources.properties()) {
    const IdSet there = map(ranks);
    if (!there.empty()) moved.add_property(name, there);
  }
  // Leave out `scheduling`: a graph of the resources has their former ranks.
  moved.set_starttime(resources.starttime());
  moved.set_expiration(resources.expiration());
  return moved;
}

std::optional<IdSet::Id> RankMap::rank_of(IdSet::Id rank) const {
  if (same_.contains(rank)) return rank;
  const auto found = moved_.find(rank);
  return found == moved_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace resourced::module

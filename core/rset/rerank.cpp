// Implements rerank() of operations.hpp: finds the present rank of each given host.

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/id_collector.hpp"
#include "core/rset/operations.hpp"

namespace resourced::rset {

using text::IdSet;

namespace {

/// The new rank of each position in the set's nodelist.
class NewRanks {
 public:
  NewRanks(const ResourceSet& set, const text::Hostlist& hosts) : ranks_(set.nodelist().size()) {
    set.nodelist().for_each(
        [&](std::string_view host) { waiting_[std::string(host)].push_back(position_++); });
    // Reversed, so that popping from the back gives the ranks of a host in ascending order.
    for (auto& [host, positions] : waiting_) std::reverse(positions.begin(), positions.end());
    IdSet::Id rank = 0;
    hosts.for_each([&](std::string_view host) { take(host, rank++); });
    if (hosts.size() < ranks_.size()) fail_missing(set);
  }

  [[nodiscard]] IdSet ranks(const IdSet& positions) const {
    IdCollector ranks;
    positions.for_each([&](IdSet::Id position) { ranks.add(ranks_[position]); });
    return ranks.take();
  }

 private:
  void take(std::string_view host, IdSet::Id rank) {
    const auto at = waiting_.find(std::string(host));
    if (at == waiting_.end()) throw Error(EINVAL, fmt::format("unknown host: {}", host));
    if (at->second.empty()) throw Error(EINVAL, fmt::format("host {} is given too often", host));
    ranks_[at->second.back()] = rank;
    at->second.pop_back();
  }

  [[noreturn]] void fail_missing(const ResourceSet& set) const {
    const auto is_missing = [&](std::size_t position) {
      return !waiting_.at(set.nodelist().at(position)).empty();
    };
    std::size_t position = 0;
    while (!is_missing(position)) ++position;
    throw Error(EINVAL, fmt::format("host {} is missing", set.nodelist().at(position)));
  }

  std::vector<IdSet::Id> ranks_;
  std::unordered_map<std::string, std::vector<std::size_t>> waiting_;
  std::size_t position_ = 0;
};

}  // namespace

ResourceSet rerank(const ResourceSet& set, const text::Hostlist& hosts) {
  if (hosts == set.nodelist()) return remap(set);
  const NewRanks numbers(set, hosts);
  std::vector<ResourceGroup> groups = set.groups();
  for (ResourceGroup& group : groups) group.ranks = numbers.ranks(set.positions_of(group.ranks));
  ResourceSet renumbered(std::move(groups), hosts);
  for (const auto& [name, ranks] : set.properties())
    renumbered.add_property(name, numbers.ranks(set.positions_of(ranks)));
  renumbered.inherit(set);
  renumbered.set_nslots(set.nslots());
  return renumbered;
}

}  // namespace resourced::rset

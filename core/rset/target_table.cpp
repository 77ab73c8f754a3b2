#include "core/rset/target_table.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/rset/id_collector.hpp"
#include "core/text/idset_builder.hpp"

namespace resourced::rset {

using text::IdSet;

struct TargetTable::Index {
  /// Builds the index of these hosts, whose ranks are in the same order.
  Index(const text::Hostlist& hosts, const text::IdSet& ranks);

  /// Returns all positions of the hosts at these positions. Requires that hosts repeat.
  [[nodiscard]] text::IdSet with_sharing(const text::IdSet& some) const;

  text::HostIndex positions;
  bool hosts_repeat;
  // Filled only where hosts repeat. For each position, first_of has the first position of the same host. The
  // positions of the host with the first position p are shared[shared_at[p]] up to shared[shared_at[p + 1]].
  std::vector<std::uint32_t> first_of;
  std::vector<std::uint32_t> shared_at;
  std::vector<std::uint32_t> shared;
  /// Filled only where hosts repeat: the ranks of each host in ascending order, and the ordinal at each
  /// position.
  std::unordered_map<std::string, std::vector<text::IdSet::Id>> ranks_of_host;
  std::vector<std::uint32_t> ordinals;

 private:
  void build_sharing(const text::Hostlist& hosts);
};

TargetTable::TargetTable() = default;
TargetTable::~TargetTable() = default;

TargetTable::TargetTable(std::vector<ResourceGroup> groups, text::Hostlist hosts)
    : groups_(std::move(groups)), hosts_(std::move(hosts)) {
  if (groups_.size() == 1) {
    ranks_ = groups_.front().ranks;
  } else {
    IdCollector ranks;
    for (const ResourceGroup& group : groups_) ranks.add(group.ranks);
    ranks_ = ranks.take();
  }

  std::size_t position = 0;
  ranks_.for_each_range([&](IdSet::Range range) {
    runs_.push_back({range.first, range.last, position});
    position += std::size_t{range.last} - range.first + 1;
  });
}

std::optional<std::size_t> TargetTable::position(IdSet::Id rank) const {
  const auto run =
      std::partition_point(runs_.begin(), runs_.end(), [rank](const Run& r) { return r.last < rank; });
  if (run == runs_.end() || rank < run->first) return std::nullopt;
  return run->position + (rank - run->first);
}

IdSet TargetTable::positions(const IdSet& ranks) const {
  text::IdSetBuilder positions;
  ranks.for_each_range([&](IdSet::Range range) {
    auto run =
        std::partition_point(runs_.begin(), runs_.end(), [&](const Run& r) { return r.last < range.first; });
    for (; run != runs_.end() && run->first <= range.last; ++run) {
      const IdSet::Id first = std::max(run->first, range.first);
      const IdSet::Id last = std::min(run->last, range.last);
      positions.append(static_cast<IdSet::Id>(run->position + (first - run->first)),
                       static_cast<IdSet::Id>(run->position + (last - run->first)));
    }
  });
  return positions.take();
}

const TargetTable::Index& TargetTable::index() const {
  std::call_once(index_built_, [this] { index_ = std::make_unique<const Index>(hosts_, ranks_); });
  return *index_;
}

TargetTable::Index::Index(const text::Hostlist& hosts, const IdSet& all)
    : positions(hosts), hosts_repeat(has_repeats(hosts)) {
  if (!hosts_repeat) return;
  build_sharing(hosts);
  ordinals.reserve(hosts.size());
  auto rank = all.at_or_after(0);
  hosts.for_each([&](std::string_view host) {
    std::vector<IdSet::Id>& ranks = ranks_of_host[std::string(host)];
    ordinals.push_back(static_cast<std::uint32_t>(ranks.size()));
    ranks.push_back(*rank);
    rank = all.at_or_after(*rank + 1);
  });
}

void TargetTable::Index::build_sharing(const text::Hostlist& hosts) {
  first_of.reserve(hosts.size());
  shared_at.assign(hosts.size() + 1, 0);
  hosts.for_each([&](std::string_view host) {
    const auto first = static_cast<std::uint32_t>(*positions.find(host));
    first_of.push_back(first);
    ++shared_at[first + 1];
  });
  std::partial_sum(shared_at.begin(), shared_at.end(), shared_at.begin());
  shared.resize(hosts.size());
  std::vector<std::uint32_t> next(shared_at.begin(), shared_at.end() - 1);
  for (std::uint32_t position = 0; position < first_of.size(); ++position)
    shared[next[first_of[position]]++] = position;
}

bool TargetTable::hosts_repeat() const { return index().hosts_repeat; }

std::uint32_t TargetTable::ordinal_of(IdSet::Id rank) const {
  if (!hosts_repeat()) return 0;
  const auto at = position(rank);
  return at ? index().ordinals[*at] : 0;
}

std::optional<IdSet::Id> TargetTable::rank_of(std::string_view host, std::uint32_t ordinal) const {
  if (ordinal > 0) {
    const auto ranks = index().ranks_of_host.find(std::string(host));
    if (ranks == index().ranks_of_host.end() || ordinal >= ranks->second.size()) return std::nullopt;
    return ranks->second[ordinal];
  }
  const std::optional<std::size_t> position = index().positions.find(host);
  if (!position) return std::nullopt;
  const auto after =
      std::partition_point(runs_.begin(), runs_.end(), [&](const Run& r) { return r.position <= *position; });
  const Run& run = *(after - 1);
  return static_cast<IdSet::Id>(run.first + (*position - run.position));
}

HostSearch TargetTable::ranks_of(const text::Hostlist& hosts, std::size_t most_unknown) const {
  // Up to this number of ranges are found in any set, so a short list may repeat names.
  constexpr std::size_t always = 16384;
  text::HostIndex::Found found =
      index().positions.find(hosts, most_unknown, std::max(always, hosts_.size()) + most_unknown);
  return {ranks_at(found.positions), std::move(found.unknown)};
}

IdSet TargetTable::Index::with_sharing(const IdSet& some) const {
  IdCollector firsts;
  some.for_each([&](IdSet::Id position) { firsts.add(first_of[position]); });
  IdCollector all;
  firsts.take().for_each([&](IdSet::Id first) {
    for (std::uint32_t i = shared_at[first]; i < shared_at[first + 1]; ++i) all.add(shared[i]);
  });
  return all.take();
}

IdSet TargetTable::ranks_at(const std::vector<IdSet::Range>& found) const {
  IdCollector collected;
  for (const IdSet::Range range : found) collected.add(range);
  IdSet positions = collected.take();
  if (hosts_repeat()) positions = index().with_sharing(positions);
  text::IdSetBuilder ranks;
  positions.for_each_range([&](IdSet::Range range) {
    auto run = std::partition_point(runs_.begin(), runs_.end(),
                                    [&](const Run& r) { return r.position <= range.first; }) -
               1;
    for (std::size_t at = range.first; at <= range.last; ++run) {
      const std::size_t end = std::min<std::size_t>(range.last, run->position + (run->last - run->first));
      ranks.append(static_cast<IdSet::Id>(run->first + (at - run->position)),
                   static_cast<IdSet::Id>(run->first + (end - run->position)));
      at = end + 1;
    }
  });
  return ranks.take();
}

}  // namespace resourced::rset

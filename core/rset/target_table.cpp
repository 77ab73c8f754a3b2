#include "core/rset/target_table.hpp"

#include <algorithm>

#include "core/rset/host_repeats.hpp"
#include "core/rset/id_collector.hpp"
#include "core/text/idset_builder.hpp"

namespace resourced {

TargetTable::TargetTable(std::vector<ResourceGroup> groups, Hostlist hosts)
    : groups_(std::move(groups)), hosts_(std::move(hosts)) {
  IdCollector ranks;
  for (const ResourceGroup& group : groups_) ranks.add(group.ranks);
  ranks_ = ranks.take();

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
  IdSetBuilder positions;
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

void TargetTable::build_index() const {
  std::call_once(index_built_, [this] {
    index_ = HostIndex(hosts_);
    hosts_repeat_ = has_repeats(hosts_);
  });
}

bool TargetTable::hosts_repeat() const {
  build_index();
  return hosts_repeat_;
}

std::optional<IdSet::Id> TargetTable::rank_of(std::string_view host) const {
  build_index();
  const std::optional<std::size_t> position = index_.find(host);
  if (!position) return std::nullopt;
  const auto after =
      std::partition_point(runs_.begin(), runs_.end(), [&](const Run& r) { return r.position <= *position; });
  const Run& run = *(after - 1);
  return static_cast<IdSet::Id>(run.first + (*position - run.position));
}

}  // namespace resourced

// How allocations follow their targets to another inventory, or to the ranks that these have after a restart.
#include "core/module/moved_allocations.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/invariant.hpp"
#include "core/module/allocations.hpp"
#include "core/rset/operations.hpp"

namespace resourced::module {

using rset::ResourceGroup;
using rset::ResourceSet;
using text::IdSet;

namespace {

AbsentResources absent_resources(const ResourceSet& resources, IdSet::Id rank, TargetName name) {
  const ResourceGroup& group = group_of(resources, rank);
  AbsentResources absent{std::move(name), group.cores, group.gpus, group.extra};
  for (const auto& [property, ranks] : resources.properties())
    if (ranks.contains(rank)) absent.properties.push_back(property);
  return absent;
}

// Makes a record of the whole allocation by the names of its targets. Targets that are absent now get ranks
// above the others. `configured` is the set that ordinals count in.
RecordedAllocation recorded(const Allocation& allocation, const ResourceSet& configured) {
  RecordedAllocation row{allocation.name, allocation.resources, {}, allocation.expiration, allocation.note};
  const IdSet& ranks = allocation.resources.ranks();
  if (configured.hosts_repeat())
    ranks.for_each([&](IdSet::Id rank) { row.ordinals.push_back(configured.ordinal_of(rank)); });
  if (allocation.absent.empty()) return row;
  row.ordinals.resize(ranks.count());
  // Parts of targets that are present come first, then the others.
  ResourceSet whole = allocation.resources;
  std::vector<const AbsentResources*> elsewhere;
  for (const AbsentResources& absent : allocation.absent) {
    // The whole target of the part may be absent by now, or have left the allocation.
    if (absent.part_of && ranks.contains(*absent.part_of)) {
      const IdSet rank{*absent.part_of};
      whole = rset::append(
          whole, ResourceSet({{rank, absent.cores, absent.gpus, absent.extra}}, configured.hosts(rank)));
    } else {
      elsewhere.push_back(&absent);
    }
  }
  std::vector<ResourceGroup> groups = whole.groups();
  text::Hostlist hosts = whole.nodelist();
  const IdSet::Id first = ranks.empty() ? 0 : ranks.last() + 1;
  IdSet::Id next = first;
  for (const AbsentResources* absent : elsewhere) {
    groups.push_back({IdSet{next++}, absent->cores, absent->gpus, absent->extra});
    hosts.append(absent->target.host);
    row.ordinals.push_back(absent->target.ordinal);
  }
  row.resources = ResourceSet(std::move(groups), std::move(hosts));
  row.resources.inherit(allocation.resources);
  row.resources.set_nslots(allocation.nslots);
  for (const auto& [name, having] : allocation.resources.properties())
    row.resources.add_property(name, having);
  next = first;
  for (const AbsentResources* absent : elsewhere) {
    for (const std::string& name : absent->properties) row.resources.add_property(name, IdSet{next});
    ++next;
  }
  return row;
}

}  // namespace

ResourceSet in_other_ranks(const ResourceSet& resources, const ResourceSet& to,
                           const std::function<std::optional<IdSet::Id>(IdSet::Id)>& new_rank) {
  const auto there = [&](const IdSet& ranks) {
    IdSet renumbered;
    ranks.for_each([&](IdSet::Id rank) {
      if (const auto found = new_rank(rank)) renumbered.insert(*found);
    });
    return renumbered;
  };
  std::vector<ResourceGroup> groups;
  for (const ResourceGroup& group : resources.groups()) {
    IdSet ranks = there(group.ranks);
    if (!ranks.empty()) groups.push_back({std::move(ranks), group.cores, group.gpus, group.extra});
  }
  if (groups.empty()) return without_targets(resources);
  IdSet ranks;
  for (const ResourceGroup& group : groups) ranks |= group.ranks;
  ResourceSet result(std::move(groups), to.hosts(ranks));
  for (const auto& [name, having] : resources.properties()) result.add_property(name, there(having));
  result.inherit(resources);
  if (ranks.count() == resources.ranks().count()) result.set_nslots(resources.nslots());
  return result;
}

AllocatedPlaces::AllocatedPlaces(const ResourceSet& inventory) : inventory_(inventory) {
  bool is_first = true;
  for (const ResourceGroup& group : inventory.groups()) {
    if (std::exchange(is_first, false)) {
      cores_ = group.cores;
      gpus_ = group.gpus;
    } else {
      cores_ &= group.cores;
      gpus_ &= group.gpus;
    }
  }
}

ResourceSet AllocatedPlaces::lacking(const ResourceSet& resources) const {
  const bool has_all = std::ranges::all_of(resources.groups(), [&](const ResourceGroup& group) {
    return cores_.includes(group.cores) && gpus_.includes(group.gpus);
  });
  if (has_all) return {};
  return rset::diff(resources, inventory_.copy_ranks(resources.ranks()));
}

void Ledger::move(const ResourceSet& from, const ResourceSet& to, const RankMap& map) {
  if (empty()) return;
  const AllocatedPlaces places(to);
  Ledger moved;
  struct Changing {
    SharedAllocation allocation;
    /// Targets that leave now. They follow those that were absent before.
    std::vector<AbsentResources> gone;
  };
  std::vector<Changing> changing;
  for (const auto& [name, allocation] : allocations_) {
    if (allocation->absent.empty() && map.keeps(allocation->resources.ranks()) &&
        places.lacking(allocation->resources).empty()) {
      moved.put(allocation, moved.allocations_.end());
    } else {
      changing.push_back({allocation, {}});
    }
  }
  for (Changing& each : changing) {
    SharedAllocation& allocation = each.allocation;
    allocation->resources.ranks().for_each([&](IdSet::Id rank) {
      if (map.rank_of(rank)) return;
      each.gone.push_back(
          absent_resources(allocation->resources, rank, {from.host(rank), from.ordinal_of(rank)}));
      // Cores and gpus of the target that were absent before leave with it.
      for (const AbsentResources& absent : allocation->absent) {
        if (absent.part_of != rank) continue;
        each.gone.back().cores |= absent.cores;
        each.gone.back().gpus |= absent.gpus;
      }
    });
    std::vector<AbsentResources> absent;
    for (AbsentResources part : allocation->absent) {
      if (part.part_of) {
        const IdSet::Id rank = *part.part_of;
        part.part_of = map.rank_of(rank);
        if (!part.part_of && allocation->resources.ranks().contains(rank)) continue;
        // Another inventory may name the target otherwise.
        part.target = part.part_of ? TargetName{to.host(*part.part_of), to.ordinal_of(*part.part_of)}
                                   : TargetName{from.host(rank), from.ordinal_of(rank)};
        if (!part.part_of) {
          each.gone.push_back(std::move(part));
          continue;
        }
      }
      absent.push_back(std::move(part));
    }
    ResourceSet there =
        in_other_ranks(allocation->resources, to, [&](IdSet::Id rank) { return map.rank_of(rank); });
    allocation = with_resources(*allocation, std::move(there), std::move(absent));
    moved.put(allocation, moved.allocations_.end());
  }
  // Absent targets come back last, so that resources which are allocated to a present target stay there.
  // Targets that leave now do not come back: if hosts repeat, another target has their name.
  for (auto& [allocation, gone] : changing) {
    SharedAllocation restored = moved.take(moved.allocations_.find(allocation->name));
    if (!restored->absent.empty() || !places.lacking(restored->resources).empty())
      restored = moved.restore(recorded(*restored, to), places);
    if (!gone.empty()) {
      std::vector<AbsentResources> absent = restored->absent;
      std::ranges::move(gone, std::back_inserter(absent));
      restored = with_resources(*restored, restored->resources, std::move(absent));
    }
    moved.put(restored, moved.allocations_.end());
  }
  moved.version_ = version_ + 1;
  *this = std::move(moved);
}

SharedAllocation Ledger::restore(const RecordedAllocation& recorded, const AllocatedPlaces& places) const {
  const ResourceSet& present = places.inventory();
  const ResourceSet& resources = recorded.resources;
  Allocation allocation{recorded.name,      resources,           nullptr,      {},
                        resources.nslots(), recorded.expiration, recorded.note};
  // The usual case: all targets are where they were.
  if (recorded.ordinals.empty() && !present.hosts_repeat() && present.ranks().includes(resources.ranks()) &&
      present.has_hosts(resources.ranks(), resources.nodelist()) && places.lacking(resources).empty() &&
      !first_held(resources)) {
    allocation.text = std::make_shared<const std::string>(resources.encode());
    return std::make_shared<const Allocation>(std::move(allocation));
  }
  // The name of a target, and its present rank.
  struct Target {
    TargetName name;
    std::optional<IdSet::Id> rank;
  };
  std::map<IdSet::Id, Target> targets;
  std::vector<std::string> hosts;
  resources.nodelist().for_each([&](std::string_view host) { hosts.emplace_back(host); });
  std::size_t position = 0;
  std::set<IdSet::Id> taken;
  bool is_same = true;
  resources.ranks().for_each([&](IdSet::Id rank) {
    Target target{{std::move(hosts[position]), recorded.ordinals.empty() ? 0 : recorded.ordinals[position]},
                  {}};
    ++position;
    target.rank = module::rank_of(target.name, present);
    const ResourceGroup& group = group_of(resources, rank);
    if (target.rank) {
      const ResourceSet here({{IdSet{*target.rank}, group.cores, group.gpus}}, present.hosts({*target.rank}));
      if (first_held(here) || !taken.insert(*target.rank).second) target.rank.reset();
    }
    if (!target.rank) allocation.absent.push_back(absent_resources(resources, rank, target.name));
    is_same = is_same && target.rank == rank;
    targets.emplace(rank, std::move(target));
  });
  if (!is_same)
    allocation.resources =
        in_other_ranks(resources, present, [&](IdSet::Id rank) { return targets.at(rank).rank; });
  if (ResourceSet gone = places.lacking(allocation.resources); !gone.empty()) {
    ResourceSet left = rset::diff(allocation.resources, gone);
    // An R has no gpus without cores, so the gpus of a target leave with its last core.
    IdSet without_cores;
    for (const ResourceGroup& group : left.groups())
      if (group.cores.empty()) without_cores |= group.ranks;
    if (!without_cores.empty()) {
      gone = rset::append(gone, left.copy_ranks(without_cores));
      left = rset::diff(allocation.resources, gone);
    }
    gone.ranks().for_each([&](IdSet::Id rank) {
      allocation.absent.push_back(
          absent_resources(gone, rank, {present.host(rank), present.ordinal_of(rank)}));
      allocation.absent.back().part_of = rank;
    });
    allocation.resources = left.empty() ? without_targets(resources) : std::move(left);
  }
  allocation.text = std::make_shared<const std::string>(allocation.resources.encode());
  return std::make_shared<const Allocation>(std::move(allocation));
}

}  // namespace resourced::module

#include "core/module/delta.hpp"

#include <string>

namespace resourced::module {

using rset::ResourceSet;
using text::IdSet;

void merge_properties(const ResourceSet::Properties& later, ResourceSet::Properties& same,
                      ResourceSet::Properties& opposite) {
  for (const auto& [name, ranks] : later) {
    IdSet rest = ranks;
    if (const auto undone = opposite.find(name); undone != opposite.end()) {
      rest -= undone->second;
      undone->second -= ranks;
      if (undone->second.empty()) opposite.erase(undone);
    }
    if (!rest.empty()) same[name] |= rest;
  }
}

namespace {

void drop_targets(ResourceSet::Properties& properties, const IdSet& targets) {
  for (auto& [name, ranks] : properties) ranks -= targets;
  std::erase_if(properties, [](const auto& entry) { return entry.second.empty(); });
}

ResourceSet::Properties restrict_properties(const ResourceSet::Properties& properties, const IdSet& targets) {
  ResourceSet::Properties result;
  for (const auto& [name, ranks] : properties) {
    if (IdSet some = ranks & targets; !some.empty()) result.emplace(name, std::move(some));
  }
  return result;
}

}  // namespace

bool Delta::empty() const noexcept {
  return up.empty() && down.empty() && shrink.empty() && property_add.empty() && property_remove.empty() &&
         !expiration && allocations.empty() && !scheduled;
}

void AllocationNews::merge(const AllocationNews& later) {
  // Two frees of parts become one list of ranks. Anything else needs the whole allocation.
  const bool only_freed = now && later.now && !whole && !later.whole && !later.own;
  freed |= later.freed;
  whole = later.now && !only_freed;
  expired = later.now && (expired || later.expired);
  now = later.now;
}

void Delta::merge(const Delta& later) {
  const IdSet new_up = later.up - down;
  const IdSet new_down = later.down - up;
  up -= later.down;
  down -= later.up;
  up |= new_up;
  down |= new_down;
  if (!later.shrink.empty()) {
    shrink |= later.shrink;
    down |= later.shrink;
    drop_targets(property_add, later.shrink);
    drop_targets(property_remove, later.shrink);
  }
  merge_properties(later.property_add, property_add, property_remove);
  merge_properties(later.property_remove, property_remove, property_add);
  if (later.expiration) expiration = later.expiration;
  for (const auto& [name, news] : later.allocations) {
    if (const auto pending = allocations.find(name); pending != allocations.end()) {
      pending->second.merge(news);
      // The scheduler need not hear of an allocation that has come and gone.
      if (pending->second.made && !news.now) allocations.erase(pending);
    } else if (!news.own) {
      allocations.emplace(name, news);
    }
  }
  if (later.scheduled) scheduled = later.scheduled;
}

Delta Delta::restricted(const IdSet& targets) const {
  Delta part;
  part.up = up & targets;
  part.down = down & targets;
  part.shrink = shrink & targets;
  part.property_add = restrict_properties(property_add, targets);
  part.property_remove = restrict_properties(property_remove, targets);
  part.expiration = expiration;
  return part;
}

}  // namespace resourced::module

#include "core/module/acquisition.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/invariant.hpp"

namespace resourced::module {

using text::IdSet;

void Acquisition::divide(std::vector<Partition> partitions, const IdSet& available, const Tell& tell) {
  partitions_ = std::move(partitions);
  hand_over(available, tell);
}

IdSet Acquisition::kept_by_anyone() const {
  IdSet kept;
  for (const auto& [id, holder] : holders_) kept |= holder.kept;
  return kept;
}

IdSet Acquisition::reported() const {
  IdSet reported;
  for (const auto& [id, holder] : holders_) {
    if (holder.reports) reported |= holder.kept;
  }
  return reported;
}

// Gives each holder those of its resources that belong to its partition and that no holder keeps.
void Acquisition::hand_over(const IdSet& available, const Tell& tell) {
  if (partitions_.empty()) return;
  const IdSet kept = kept_by_anyone();
  for (auto& [id, holder] : holders_) {
    const auto part = std::ranges::find(partitions_, holder.partition, &Partition::name);
    IdSet gained = holder.resources - kept;
    if (part != partitions_.end()) {
      gained &= part->targets;
    } else {
      for (const Partition& other : partitions_) gained -= other.targets;
    }
    if (gained.empty()) continue;
    RESOURCED_INVARIANT(!holder.kept.intersects(gained));
    holder.kept |= gained;
    if (holder.reports) ++reported_version_;
    Delta delta;
    delta.up = gained & available;
    if (!delta.up.empty() && !holder.muted) tell(id, std::move(delta));
  }
  check_kept();
}

void Acquisition::check_kept() const {
  IdSet kept;
  for (const auto& [id, holder] : holders_) {
    RESOURCED_INVARIANT(holder.resources.includes(holder.kept));
    RESOURCED_INVARIANT(!kept.intersects(holder.kept));
    kept |= holder.kept;
  }
}

IdSet Acquisition::targets_of(const std::optional<std::string>& partition, const IdSet& acquirable) const {
  if (!partition) {
    IdSet rest = acquirable;
    for (const Partition& part : partitions_) rest -= part.targets;
    return rest;
  }
  const auto part = std::ranges::find(partitions_, *partition, &Partition::name);
  if (part == partitions_.end()) throw Error(ENOENT, fmt::format("unknown partition: {}", *partition));
  return part->targets & acquirable;
}

Error Acquisition::busy(const std::string& partition) {
  return {EBUSY, partition.empty()
                     ? "resources are acquired by another scheduler already"
                     : fmt::format("partition {} is acquired by another scheduler already", partition)};
}

Acquisition::Acquired Acquisition::acquire(HolderId holder, const std::optional<std::string>& partition,
                                           const IdSet& acquirable, bool reports) {
  IdSet resources = targets_of(partition, acquirable);
  const std::string name = partition.value_or("");
  for (const auto& [other, held] : holders_) {
    if (held.partition == name) throw busy(name);
  }
  IdSet kept = resources - kept_by_anyone();
  const Holder& taken =
      holders_
          .insert_or_assign(holder, Holder{name, std::move(resources), std::move(kept), {}, reports, false})
          .first->second;
  check_kept();
  if (reports) ++reported_version_;
  return {taken.resources, taken.kept};
}

std::optional<Acquisition::Held> Acquisition::held_by(HolderId holder) const {
  const auto found = holders_.find(holder);
  if (found == holders_.end()) return std::nullopt;
  return Held{found->second.partition, found->second.kept};
}

bool Acquisition::has(const std::optional<std::string>& partition) const {
  return !partition || std::ranges::find(partitions_, *partition, &Partition::name) != partitions_.end();
}

bool Acquisition::is_held(const std::string& partition) const {
  return std::ranges::any_of(holders_, [&](const auto& held) { return held.second.partition == partition; });
}

IdSet Acquisition::awaited(const Partition& partition, const IdSet& acquirable) const {
  IdSet awaited;
  for (const auto& [id, holder] : holders_) {
    if (holder.partition == partition.name) {
      awaited |= (partition.targets & acquirable) - holder.resources;
    } else {
      awaited |= holder.kept & partition.targets;
    }
  }
  return awaited;
}

IdSet Acquisition::leaving(const Partition& partition) const {
  const auto found = std::ranges::find_if(
      holders_, [&](const auto& held) { return held.second.partition == partition.name; });
  return found == holders_.end() ? IdSet{} : found->second.kept - partition.targets;
}

void Acquisition::release(HolderId holder, const IdSet& available, const Tell& tell) {
  const auto found = holders_.find(holder);
  if (found == holders_.end()) return;
  if (found->second.reports) ++reported_version_;
  holders_.erase(found);
  hand_over(available, tell);
}

void Acquisition::mute() {
  for (auto& [id, holder] : holders_) holder.muted = true;
}

void Acquisition::mute(HolderId holder) {
  const auto found = holders_.find(holder);
  RESOURCED_INVARIANT(found != holders_.end());
  found->second.muted = true;
}

void Acquisition::announce(const Delta& delta, const IdSet& excluded, const Tell& tell) {
  for (auto& [id, holder] : holders_) {
    Delta part = delta.restricted(holder.resources);
    // A target that another holder keeps is down for this one, and stays down.
    part.up &= holder.kept;
    part.down &= holder.kept;
    part.down |= part.shrink;
    Delta properties;
    std::swap(properties.property_add, part.property_add);
    std::swap(properties.property_remove, part.property_remove);
    holder.withheld.merge(properties);

    if (!part.shrink.empty()) {
      holder.resources -= part.shrink;
      holder.kept -= part.shrink;
      if (holder.reports) ++reported_version_;
      holder.withheld = holder.withheld.restricted(holder.resources);
    }
    part.merge(holder.withheld.restricted(holder.resources - excluded));
    holder.withheld = holder.withheld.restricted(excluded);
    if (!part.empty() && !holder.muted) tell(id, std::move(part));
  }
}

}  // namespace resourced::module

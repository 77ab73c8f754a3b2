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
  index_.clear();
  divided_ = {};
  part_of_.clear();
  for (std::size_t i = 0; i < partitions_.size(); ++i) {
    index_.emplace(partitions_[i].name, i);
    divided_ |= partitions_[i].targets;
    partitions_[i].targets.for_each([&](IdSet::Id target) { part_of_[target] = i; });
  }
  IdSet acquired;
  for (const auto& [id, holder] : holders_) {
    look_for_strays(id, holder);
    acquired |= holder.resources;
  }
  hand_over(acquired - kept_, available, tell);
}

void Acquisition::move(const PartitionChanges& changes, const IdSet& available, const Tell& tell) {
  IdSet moved;
  for (const auto& [index, targets] : changes) {
    const IdSet lost = partitions_[index].targets - targets;
    moved |= lost;
    divided_ -= lost;
    lost.for_each([&](IdSet::Id target) { part_of_.erase(target); });
  }
  for (const auto& [index, targets] : changes) {
    const IdSet gained = targets - partitions_[index].targets;
    moved |= gained;
    divided_ |= gained;
    const std::size_t part = index;
    gained.for_each([&](IdSet::Id target) { part_of_[target] = part; });
    partitions_[index].targets = targets;
    if (const auto holder = holder_of_.find(partitions_[index].name); holder != holder_of_.end())
      look_for_strays(holder->second, holders_.at(holder->second));
  }
  if (const auto rest = holder_of_.find(""); rest != holder_of_.end())
    look_for_strays(rest->second, holders_.at(rest->second));
  hand_over(moved - kept_, available, tell);
}

std::optional<std::size_t> Acquisition::partition_of(IdSet::Id target) const {
  const auto found = part_of_.find(target);
  return found == part_of_.end() ? std::nullopt : std::optional(found->second);
}

void Acquisition::look_for_strays(HolderId id, const Holder& holder) {
  const auto part = index_.find(holder.partition);
  // A removed partition has no targets.
  const bool strays = holder.partition.empty() ? holder.resources.intersects(divided_)
                      : part == index_.end()   ? !holder.resources.empty()
                                             : !partitions_[part->second].targets.includes(holder.resources);
  if (strays) {
    straying_.insert(id);
  } else {
    straying_.erase(id);
  }
}

void Acquisition::give(Holder& holder, const IdSet& gained) {
  RESOURCED_INVARIANT(!kept_.intersects(gained));
  holder.kept |= gained;
  kept_ |= gained;
  check_kept(holder);
  if (!holder.reports) return;
  reported_ |= gained;
  ++reported_version_;
}

void Acquisition::take(Holder& holder, const IdSet& lost) {
  holder.kept -= lost;
  kept_ -= lost;
  if (!holder.reports) return;
  reported_ -= lost;
  ++reported_version_;
}

void Acquisition::hand_over(const IdSet& targets, const IdSet& available, const Tell& tell) {
  if (partitions_.empty()) return;
  std::map<HolderId, IdSet> gained;
  targets.for_each([&](IdSet::Id target) {
    const auto part = partition_of(target);
    const auto holder = holder_of_.find(part ? partitions_[*part].name : "");
    if (holder != holder_of_.end() && holders_.at(holder->second).resources.contains(target))
      gained[holder->second].insert(target);
  });
  for (const auto& [id, ranks] : gained) {
    Holder& holder = holders_.at(id);
    give(holder, ranks);
    Delta delta;
    delta.up = ranks & available;
    if (!delta.up.empty() && !holder.muted) tell(id, std::move(delta));
  }
}

void Acquisition::check_kept(const Holder& holder) {
  RESOURCED_INVARIANT(holder.resources.includes(holder.kept));
}

IdSet Acquisition::targets_of(const std::optional<std::string>& partition, const IdSet& all) const {
  if (!partition) return all - divided_;
  const auto part = index_.find(*partition);
  if (part == index_.end()) throw Error(ENOENT, fmt::format("unknown partition: {}", *partition));
  return partitions_[part->second].targets & all;
}

Error Acquisition::busy(const std::string& partition, std::string_view holder) {
  const std::string what =
      partition.empty() ? "resources are acquired by another scheduler already"
                        : fmt::format("partition {} is acquired by another scheduler already", partition);
  return {EBUSY, holder.empty() ? what : fmt::format("{}: {}", what, holder)};
}

Acquisition::Acquired Acquisition::acquire(HolderId holder, const std::optional<std::string>& partition,
                                           const IdSet& acquirable, bool reports, Extensions extensions) {
  IdSet resources = targets_of(partition, acquirable);
  const std::string name = partition.value_or("");
  if (holder_of_.contains(name)) throw busy(name);
  const IdSet free = resources - kept_;
  RESOURCED_INVARIANT(!holders_.contains(holder));
  holder_of_.emplace(name, holder);
  Holder& taken = holders_[holder];
  taken = {name, std::move(resources), {}, {}, reports, extensions, false};
  if (extensions.ledger || extensions.scheduled) extended_.insert(holder);
  give(taken, free);
  return {taken.resources, taken.kept};
}

std::optional<Acquisition::Held> Acquisition::held_by(HolderId holder) const {
  const auto found = holders_.find(holder);
  if (found == holders_.end()) return std::nullopt;
  return Held{found->second.partition, found->second.kept};
}

bool Acquisition::has_extension(HolderId holder, bool Extensions::*extension) const {
  const auto found = holders_.find(holder);
  return found != holders_.end() && found->second.extensions.*extension;
}

bool Acquisition::tells(HolderId holder, bool Extensions::*extension) const {
  return has_extension(holder, extension) && !holders_.at(holder).muted;
}

bool Acquisition::anyone_has(bool Extensions::*extension) const {
  return std::ranges::any_of(extended_,
                             [&](HolderId holder) { return holders_.at(holder).extensions.*extension; });
}

std::set<Acquisition::HolderId> Acquisition::concerned_by(const IdSet& targets,
                                                          bool Extensions::*extension) const {
  std::set<HolderId> concerned;
  if (extended_.empty()) return concerned;
  for (const HolderId holder : holders_near(targets)) {
    if (tells(holder, extension) && holders_.at(holder).resources.intersects(targets))
      concerned.insert(holder);
  }
  return concerned;
}

bool Acquisition::has(const std::optional<std::string>& partition) const {
  return !partition || index_.contains(*partition);
}

std::optional<Acquisition::HolderId> Acquisition::holder_of(const std::string& partition) const {
  const auto found = holder_of_.find(partition);
  return found == holder_of_.end() ? std::nullopt : std::optional(found->second);
}

const Acquisition::Holder* Acquisition::find_holder_of(const std::string& partition) const {
  const auto holder = holder_of(partition);
  return holder ? &holders_.at(*holder) : nullptr;
}

IdSet Acquisition::awaited(const Partition& partition, const IdSet& acquirable) const {
  const Holder* const own = find_holder_of(partition.name);
  IdSet kept = kept_ & partition.targets;
  if (own == nullptr) return kept;
  return (kept - own->kept) | ((partition.targets & acquirable) - own->resources);
}

IdSet Acquisition::leaving(const Partition& partition) const {
  const Holder* const own = find_holder_of(partition.name);
  return own == nullptr ? IdSet{} : own->kept - partition.targets;
}

void Acquisition::release(HolderId holder, const IdSet& available, const Tell& tell) {
  const auto found = holders_.find(holder);
  if (found == holders_.end()) return;
  const IdSet freed = found->second.kept;
  take(found->second, freed);
  holder_of_.erase(found->second.partition);
  straying_.erase(holder);
  withholding_.erase(holder);
  extended_.erase(holder);
  holders_.erase(found);
  hand_over(freed, available, tell);
}

void Acquisition::mute() {
  for (auto& [id, holder] : holders_) holder.muted = true;
}

void Acquisition::mute(HolderId holder) {
  const auto found = holders_.find(holder);
  RESOURCED_INVARIANT(found != holders_.end());
  found->second.muted = true;
}

std::set<Acquisition::HolderId> Acquisition::concerned_by(const Delta& delta) const {
  IdSet targets = delta.up | delta.down | delta.shrink;
  for (const auto& [name, ranks] : delta.property_add) targets |= ranks;
  for (const auto& [name, ranks] : delta.property_remove) targets |= ranks;
  if (delta.expiration) return all_holders();
  std::set<HolderId> concerned = holders_near(targets);
  concerned.insert(withholding_.begin(), withholding_.end());
  return concerned;
}

std::set<Acquisition::HolderId> Acquisition::all_holders() const {
  std::set<HolderId> all;
  for (const auto& [id, holder] : holders_) all.insert(id);
  return all;
}

std::set<Acquisition::HolderId> Acquisition::holders_near(const IdSet& targets) const {
  if (targets.count() >= holders_.size()) return all_holders();
  std::set<HolderId> near(straying_);
  targets.for_each([&](IdSet::Id target) {
    const auto part = partition_of(target);
    const auto holder = holder_of_.find(part ? partitions_[*part].name : "");
    if (holder != holder_of_.end()) near.insert(holder->second);
  });
  return near;
}

void Acquisition::announce(const Delta& delta, const IdSet& excluded, const Tell& tell) {
  for (const HolderId id : concerned_by(delta)) {
    Holder& holder = holders_.at(id);
    Delta part = delta.restricted(holder.resources);
    // Limit the change to kept targets: a target that another holder keeps is down for this one, and stays
    // down.
    part.up &= holder.kept;
    part.down &= holder.kept;
    part.down |= part.shrink;
    Delta properties;
    std::swap(properties.property_add, part.property_add);
    std::swap(properties.property_remove, part.property_remove);
    holder.withheld.merge(properties);

    if (!part.shrink.empty()) {
      take(holder, holder.kept & part.shrink);
      holder.resources -= part.shrink;
      holder.withheld = holder.withheld.restricted(holder.resources);
    }
    part.merge(holder.withheld.restricted(holder.resources - excluded));
    holder.withheld = holder.withheld.restricted(excluded);
    if (holder.withheld.empty()) {
      withholding_.erase(id);
    } else {
      withholding_.insert(id);
    }
    if (!part.empty() && !holder.muted) tell(id, std::move(part));
  }
}

}  // namespace resourced::module

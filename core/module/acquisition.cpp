#include "core/module/acquisition.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced {

void Acquisition::divide(std::vector<Partition> partitions) { partitions_ = std::move(partitions); }

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

const IdSet& Acquisition::acquire(HolderId holder, const std::optional<std::string>& partition,
                                  const IdSet& acquirable) {
  IdSet targets = targets_of(partition, acquirable);
  for (const auto& [other, held] : holders_) targets -= held.targets;
  const std::string name = partition.value_or("");
  for (const auto& [other, held] : holders_) {
    if (held.partition != name) continue;
    throw Error(EBUSY, name.empty()
                           ? "resources are acquired by another scheduler already"
                           : fmt::format("partition {} is acquired by another scheduler already", name));
  }
  return holders_.insert_or_assign(holder, Holder{name, std::move(targets), {}, false}).first->second.targets;
}

bool Acquisition::is_held(const std::string& partition) const {
  return std::ranges::any_of(holders_, [&](const auto& held) { return held.second.partition == partition; });
}

IdSet Acquisition::awaited(const Partition& partition) const {
  IdSet awaited;
  for (const auto& [id, holder] : holders_) {
    if (holder.partition != partition.name) awaited |= holder.targets & partition.targets;
  }
  return awaited;
}

IdSet Acquisition::leaving(const Partition& partition) const {
  const auto found = std::ranges::find_if(
      holders_, [&](const auto& held) { return held.second.partition == partition.name; });
  return found == holders_.end() ? IdSet{} : found->second.targets - partition.targets;
}

void Acquisition::release(HolderId holder) { holders_.erase(holder); }

void Acquisition::mute() {
  for (auto& [id, holder] : holders_) holder.muted = true;
}

void Acquisition::announce(const Delta& delta, const IdSet& removed, const IdSet& excluded,
                           const std::function<void(HolderId, Delta)>& tell) {
  for (auto& [id, holder] : holders_) {
    Delta part = delta.restricted(holder.targets);
    Delta properties;
    std::swap(properties.property_add, part.property_add);
    std::swap(properties.property_remove, part.property_remove);
    holder.withheld.merge(properties);

    if (!removed.empty()) {
      holder.targets -= removed;
      holder.withheld = holder.withheld.restricted(holder.targets);
    }
    part.merge(holder.withheld.restricted(holder.targets - excluded));
    holder.withheld = holder.withheld.restricted(excluded);
    if (!part.empty() && !holder.muted) tell(id, std::move(part));
  }
}

}  // namespace resourced

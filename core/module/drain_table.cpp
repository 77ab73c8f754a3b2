#include "core/module/drain_table.hpp"

#include <variant>

#include "core/invariant.hpp"

namespace resourced::module {

using text::IdSet;

bool DrainTable::Key::is_for_health_of(std::string_view host) const noexcept {
  const auto* agent = by ? std::get_if<ByHost>(&*by) : nullptr;
  return agent != nullptr && agent->name == host && reason && reason->starts_with(health_prefix);
}

bool DrainTable::Key::is_for_silence() const noexcept {
  return !by && reason && reason->starts_with(silence_prefix);
}

const DrainTable::Key* DrainTable::find(IdSet::Id rank) const {
  const auto found = key_of_.find(rank);
  return found == key_of_.end() ? nullptr : found->second;
}

void DrainTable::put(IdSet::Id rank, const Key& key) {
  const auto [group, is_new] = groups_.try_emplace(key);
  if (is_new && key.until) ends_.emplace(*key.until, &group->first);
  group->second.insert(rank);
  key_of_[rank] = &group->first;
}

void DrainTable::take(IdSet::Id rank) {
  const auto found = key_of_.find(rank);
  RESOURCED_INVARIANT(found != key_of_.end());
  const auto group = groups_.find(*found->second);
  RESOURCED_INVARIANT(group != groups_.end() && group->second.contains(rank));
  group->second.erase(rank);
  if (group->second.empty()) {
    if (group->first.until) ends_.erase({*group->first.until, &group->first});
    groups_.erase(group);
  }
  key_of_.erase(found);
}

std::vector<DrainGroup> DrainTable::drain(const IdSet& ranks, const Key& entry, Overwrite overwrite) {
  std::map<Key, IdSet> changed;
  ranks.for_each([&](IdSet::Id rank) {
    Key key = entry;
    if (const Key* present = find(rank)) {
      if (overwrite != Overwrite::reason_and_timestamp) key.timestamp = present->timestamp;
      if (overwrite == Overwrite::nothing && present->reason) key.reason = present->reason;
      const bool keeps_end = overwrite == Overwrite::nothing || key.until == present->until;
      const bool stays = key.timestamp == present->timestamp && key.reason == present->reason && keeps_end;
      // An entry that stays remains the drain of its first operator. A drain of the daemon or of an agent,
      // which these could end, becomes the drain of the operator that overwrites it.
      const bool is_of_operator = present->by && !std::holds_alternative<ByHost>(*present->by);
      if (stays && (overwrite == Overwrite::nothing || is_of_operator || key.by == present->by)) return;
      take(rank);
    }
    put(rank, key);
    changed[key].insert(rank);
  });
  std::vector<DrainGroup> result;
  for (auto& [key, targets] : changed) {
    ranks_ |= targets;
    if (key.reason) {
      with_reason_ |= targets;
    } else {
      with_reason_ -= targets;
    }
    result.push_back({std::move(targets), key.timestamp, key.reason, key.by, key.until});
  }
  RESOURCED_INVARIANT(key_of_.size() == ranks_.count());
  return result;
}

IdSet DrainTable::undrain(const IdSet& ranks) {
  IdSet gone = ranks & ranks_;
  gone.for_each([&](IdSet::Id rank) { take(rank); });
  ranks_ -= gone;
  with_reason_ -= gone;
  RESOURCED_INVARIANT(key_of_.size() == ranks_.count());
  return gone;
}

}  // namespace resourced::module

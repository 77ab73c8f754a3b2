#include "core/module/drain_table.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/invariant.hpp"

namespace resourced::module {

using text::IdSet;

bool Drain::is_for_health() const noexcept {
  return by && std::holds_alternative<ByHost>(*by) && reason && reason->starts_with(health_prefix);
}

bool Drain::is_for_health_of(std::string_view host) const noexcept {
  return is_for_health() && std::get<ByHost>(*by).name == host;
}

bool Drain::is_for_silence() const noexcept { return !by && reason && reason->starts_with(silence_prefix); }

DrainTable::DrainTable(const DrainTable& other) {
  for (const auto& [key, ranks] : other.groups_) (void)drain(ranks, key, Overwrite::nothing);
}

DrainTable& DrainTable::operator=(const DrainTable& other) {
  if (this != &other) *this = DrainTable(other);
  return *this;
}

const Drain* DrainTable::find(IdSet::Id rank) const {
  const auto page = pages_.find(rank / page_size);
  return page == pages_.end() ? nullptr : page->second.at(rank % page_size);
}

void DrainTable::set_entry(IdSet::Range ranks, const Drain* entry) {
  for (IdSet::Id first = ranks.first;;) {
    Page& page = pages_[first / page_size];
    const IdSet::Id last = std::min(ranks.last, first - first % page_size + page_size - 1);
    std::fill(page.begin() + first % page_size, page.begin() + last % page_size + 1, entry);
    if (last == ranks.last) return;
    first = last + 1;
  }
}

std::vector<DrainTable::Run> DrainTable::runs(const IdSet& ranks) const {
  std::vector<Run> runs;
  const Page none{};
  ranks.for_each_range([&](IdSet::Range range) {
    bool continues = false;
    for (IdSet::Id first = range.first;;) {
      const auto found = pages_.find(first / page_size);
      const Page& page = found == pages_.end() ? none : found->second;
      const IdSet::Id last = std::min(range.last, first - first % page_size + page_size - 1);
      for (IdSet::Id rank = first;; ++rank) {
        const Drain* entry = page.at(rank % page_size);
        if (continues && runs.back().entry == entry) {
          runs.back().ranks.last = rank;
        } else {
          runs.push_back({{rank, rank}, entry});
        }
        continues = true;
        if (rank == last) break;
      }
      if (last == range.last) return;
      first = last + 1;
    }
  });
  return runs;
}

void DrainTable::put(IdSet::Range ranks, const Drain& key) {
  const auto [group, is_new] = groups_.try_emplace(key);
  if (is_new && key.until) ends_.emplace(*key.until, &group->first);
  group->second.insert(ranks.first, ranks.last);
  set_entry(ranks, &group->first);
}

void DrainTable::take(const Run& run) {
  const auto group = groups_.find(*run.entry);
  RESOURCED_INVARIANT(group != groups_.end());
  set_entry(run.ranks, nullptr);
  group->second.erase(run.ranks.first, run.ranks.last);
  if (!group->second.empty()) return;
  if (group->first.until) ends_.erase({*group->first.until, &group->first});
  groups_.erase(group);
}

std::vector<DrainGroup> DrainTable::drain(const IdSet& ranks, const Drain& entry, Overwrite overwrite) {
  std::map<Drain, IdSet> changed;
  for (const Run& run : runs(ranks)) {
    Drain key = entry;
    if (run.entry != nullptr) {
      const Drain& present = *run.entry;
      if (overwrite == Overwrite::nothing && present.reason) continue;
      if (overwrite != Overwrite::reason_and_timestamp) key.timestamp = present.timestamp;
      if (overwrite == Overwrite::nothing && !key.until) key.until = present.until;
      if (overwrite == Overwrite::nothing && !key.ticket) key.ticket = present.ticket;
      const bool stays = key.timestamp == present.timestamp && key.terms() == present.terms();
      // An entry that stays remains the drain of its first operator. A drain of the daemon or of an agent,
      // which could end it, becomes the drain of the operator that overwrites it.
      const bool is_of_operator = present.by && !std::holds_alternative<ByHost>(*present.by);
      if (stays && (overwrite == Overwrite::nothing || is_of_operator || key.by == present.by)) continue;
      take(run);
    }
    put(run.ranks, key);
    changed[key].insert(run.ranks.first, run.ranks.last);
  }
  std::vector<DrainGroup> result;
  for (auto& [key, targets] : changed) {
    ranks_ |= targets;
    if (key.reason) {
      with_reason_ |= targets;
    } else {
      with_reason_ -= targets;
    }
    result.push_back({key, std::move(targets)});
  }
  return result;
}

IdSet DrainTable::undrain(const IdSet& ranks) {
  IdSet gone = ranks & ranks_;
  for (const Run& run : runs(gone)) {
    RESOURCED_INVARIANT(run.entry != nullptr);
    take(run);
  }
  ranks_ -= gone;
  with_reason_ -= gone;
  return gone;
}

}  // namespace resourced::module

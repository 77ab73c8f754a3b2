#include "core/module/schedules.hpp"

#include <utility>

namespace resourced::module {

using text::IdSet;

namespace {

/// Returns those of these targets whose entry in the table begins at this time, or all that have an entry.
IdSet beginning(const DrainTable& table, const IdSet& ranks, std::optional<WallTime> begin) {
  if (!begin) return ranks & table.ranks();
  IdSet found;
  for (const auto& [range, entry] : table.runs(ranks & table.ranks()))
    if (entry->timestamp == *begin) found.insert(range.first, range.last);
  return found;
}

}  // namespace

std::map<Drain, IdSet> Schedules::groups() const { return groups_of(ranks()); }

std::map<Drain, IdSet> Schedules::groups_of(const IdSet& targets) const {
  std::map<Drain, IdSet> all;
  for (const DrainTable& table : tables_) {
    for (const auto& [drain, ranks] : table.groups()) {
      if (IdSet some = ranks & targets; !some.empty()) all[drain] |= some;
    }
  }
  return all;
}

IdSet Schedules::full(const IdSet& ranks, WallTime begin) const {
  IdSet full = ranks & tables_.back().ranks();
  for (const DrainTable& table : tables_) full -= beginning(table, full, begin);
  return full;
}

void Schedules::cancel(const IdSet& ranks, std::optional<WallTime> begin) {
  for (std::size_t position = most; position-- > 0;)
    take(position, beginning(tables_.at(position), ranks, begin));
}

void Schedules::insert(std::size_t position, const IdSet& ranks, const Drain& drain) {
  if (ranks.empty() || position == most) return;
  DrainTable& table = tables_.at(position);
  IdSet earlier;
  std::map<Drain, IdSet> later;
  for (const auto& [range, entry] : table.runs(ranks & table.ranks())) {
    if (entry->timestamp < drain.timestamp) earlier.insert(range.first, range.last);
    if (entry->timestamp > drain.timestamp) later[*entry].insert(range.first, range.last);
  }
  (void)table.drain(ranks - earlier, drain, Overwrite::reason_and_timestamp);
  insert(position + 1, earlier, drain);
  for (const auto& [displaced, targets] : later) insert(position + 1, targets, displaced);
}

void Schedules::take(std::size_t position, IdSet ranks) {
  (void)tables_.at(position).undrain(ranks);
  for (; position + 1 < most; ++position) {
    DrainTable& behind = tables_.at(position + 1);
    ranks &= behind.ranks();
    if (ranks.empty()) return;
    for (const auto& [range, entry] : behind.runs(ranks))
      (void)tables_.at(position).drain(IdSet::range(range.first, range.last), *entry,
                                       Overwrite::reason_and_timestamp);
    (void)behind.undrain(ranks);
  }
}

}  // namespace resourced::module

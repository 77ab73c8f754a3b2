// The scheduled drains: those that begin later, several for a target. A change costs the targets that it
// touches, times the drains that are scheduled for them.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>

#include "core/module/drain_table.hpp"
#include "core/module/event.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::module {

class Schedules {
 public:
  /// Maximum number of scheduled drains of a target.
  static constexpr std::size_t most = 16;
  /// The n-th table has the n-th scheduled drain of each target in the order of their begins, which are the
  /// timestamps of the entries. So a target of a table is also in each one before it.
  using Tables = std::array<DrainTable, most>;

  [[nodiscard]] const Tables& tables() const noexcept { return tables_; }
  /// The next scheduled drain of each target.
  [[nodiscard]] const DrainTable& next() const noexcept { return tables_.front(); }
  [[nodiscard]] const text::IdSet& ranks() const noexcept { return next().ranks(); }
  /// Returns all scheduled drains with their targets, ordered by their begins first.
  [[nodiscard]] std::map<Drain, text::IdSet> groups() const;
  /// Returns the scheduled drains of some targets, as groups() does for all.
  [[nodiscard]] std::map<Drain, text::IdSet> groups_of(const text::IdSet& targets) const;
  /// Returns those of these targets that have `most` scheduled drains, none of which begins at this time.
  [[nodiscard]] text::IdSet full(const text::IdSet& ranks, WallTime begin) const;

  /// Schedules a drain for targets. Replaces those that begin at the same time, and drops the last one of a
  /// target that has no room.
  void add(const text::IdSet& ranks, const Drain& drain) { insert(0, ranks, drain); }
  /// Removes the next scheduled drain of each of these targets, because it begins.
  void begin(const text::IdSet& ranks) { take(0, ranks); }
  /// Removes the scheduled drains of targets that begin at this time, or all of them.
  void cancel(const text::IdSet& ranks, std::optional<WallTime> begin = std::nullopt);

 private:
  void insert(std::size_t position, const text::IdSet& ranks, const Drain& drain);
  /// Removes the entries of targets from this table, and moves up those of the tables behind it.
  void take(std::size_t position, text::IdSet ranks);

  Tables tables_;
};

}  // namespace resourced::module

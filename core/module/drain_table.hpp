// Table of the drained targets, with the time, end, reason and actor of each drain. Drains that begin later
// are in another table of this type. Targets of one drain share one group, so that a table of many targets
// and few reasons stays small; a change costs the targets that it touches.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/module/event.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::module {

/// Prefixes of the reasons of drains for the ill health and for the silence of a node.
inline constexpr std::string_view health_prefix = "health: ";
inline constexpr std::string_view silence_prefix = "lost: silent since ";

class DrainTable {
 public:
  DrainTable() = default;
  /// A copy makes entries of its own, as they are referred to by their addresses. A move keeps them.
  DrainTable(const DrainTable& other);
  DrainTable& operator=(const DrainTable& other);
  DrainTable(DrainTable&&) = default;
  DrainTable& operator=(DrainTable&&) = default;
  ~DrainTable() = default;

  [[nodiscard]] const text::IdSet& ranks() const noexcept { return ranks_; }
  /// Returns the drained targets that have a reason.
  [[nodiscard]] const text::IdSet& with_reason() const noexcept { return with_reason_; }
  /// Returns the targets of each entry, ordered by timestamp first.
  [[nodiscard]] const std::map<Drain, text::IdSet>& groups() const noexcept { return groups_; }
  [[nodiscard]] const Drain* find(text::IdSet::Id rank) const;
  /// Consecutive targets with the same entry, or without one.
  struct Run {
    text::IdSet::Range ranks;
    const Drain* entry;
  };
  /// Returns these ranks as runs in ascending order, each as long as consecutive ranks have the same entry.
  [[nodiscard]] std::vector<Run> runs(const text::IdSet& ranks) const;
  /// The entries of groups that end by themselves, in the order of their ends.
  using Ends = std::set<std::pair<WallTime, const Drain*>>;
  [[nodiscard]] const Ends& ends() const noexcept { return ends_; }

  /// Drains targets by RFC 44's overwrite rules. An entry that is not overwritten stays as it is if it has a
  /// reason, else it keeps the terms that are not given. An entry that stays as a whole keeps its actor,
  /// unless an operator overwrites a drain of the daemon or of an agent. Returns the targets whose entry has
  /// changed, with their new entries.
  std::vector<DrainGroup> drain(const text::IdSet& ranks, const Drain& entry, Overwrite overwrite);
  /// Ends the drains of targets. Returns those that were drained.
  text::IdSet undrain(const text::IdSet& ranks);

 private:
  /// Entries of 64 consecutive ranks; null for a rank that is not drained.
  static constexpr text::IdSet::Id page_size = 64;
  using Page = std::array<const Drain*, page_size>;

  void set_entry(text::IdSet::Range ranks, const Drain* entry);
  void put(text::IdSet::Range ranks, const Drain& key);
  /// Removes a run from its group, and the group if it has no targets left.
  void take(const Run& run);

  std::map<Drain, text::IdSet> groups_;
  std::unordered_map<text::IdSet::Id, Page> pages_;
  Ends ends_;
  text::IdSet ranks_;
  text::IdSet with_reason_;
};

}  // namespace resourced::module

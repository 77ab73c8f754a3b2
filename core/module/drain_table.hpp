// Which targets are drained, since when and why. Targets of one drain share one group, so that a table of
// many targets and few reasons stays small; a change costs the targets that it touches.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/module/event.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::module {

/// Targets drained at one time for one reason.
struct DrainGroup {
  text::IdSet ranks;
  WallTime timestamp{};
  std::optional<std::string> reason;
};

class DrainTable {
 public:
  struct Key {
    WallTime timestamp{};
    std::optional<std::string> reason;
    auto operator<=>(const Key&) const = default;
  };

  [[nodiscard]] const text::IdSet& ranks() const noexcept { return ranks_; }
  /// Drained targets that have a reason.
  [[nodiscard]] const text::IdSet& with_reason() const noexcept { return with_reason_; }
  /// By timestamp, then reason.
  [[nodiscard]] const std::map<Key, text::IdSet>& groups() const noexcept { return groups_; }
  [[nodiscard]] const Key* find(text::IdSet::Id rank) const;

  /// Drains targets by RFC 44's overwrite rules. Returns the targets whose entry has changed, with their new
  /// entries.
  std::vector<DrainGroup> drain(const text::IdSet& ranks, WallTime timestamp,
                                const std::optional<std::string>& reason, Overwrite overwrite);
  /// Takes targets out. Returns those that were drained.
  text::IdSet undrain(const text::IdSet& ranks);

 private:
  void put(text::IdSet::Id rank, const Key& key);
  void take(text::IdSet::Id rank);

  std::map<Key, text::IdSet> groups_;
  std::unordered_map<text::IdSet::Id, const Key*> key_of_;
  text::IdSet ranks_;
  text::IdSet with_reason_;
};

}  // namespace resourced::module

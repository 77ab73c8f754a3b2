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

namespace resourced {

/// Targets drained at one time for one reason.
struct DrainGroup {
  IdSet ranks;
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

  [[nodiscard]] const IdSet& ranks() const noexcept { return ranks_; }
  /// Drained targets that have a reason.
  [[nodiscard]] const IdSet& with_reason() const noexcept { return with_reason_; }
  /// By timestamp, then reason.
  [[nodiscard]] const std::map<Key, IdSet>& groups() const noexcept { return groups_; }
  [[nodiscard]] const Key* find(IdSet::Id rank) const;

  /// Drains targets by RFC 44's overwrite rules. Returns the targets whose entry is another now, with what it
  /// is.
  std::vector<DrainGroup> drain(const IdSet& ranks, WallTime timestamp,
                                const std::optional<std::string>& reason, Overwrite overwrite);
  /// Takes targets out. Returns those that were drained.
  IdSet undrain(const IdSet& ranks);

 private:
  void put(IdSet::Id rank, const Key& key);
  void take(IdSet::Id rank);

  std::map<Key, IdSet> groups_;
  std::unordered_map<IdSet::Id, const Key*> key_of_;
  IdSet ranks_;
  IdSet with_reason_;
};

}  // namespace resourced

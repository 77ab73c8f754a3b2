// Maps the targets of one inventory to another, which may have other ranks and hosts: state belongs to a
// target of a host, and follows it.
#pragma once

#include <optional>
#include <unordered_map>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::module {

class RankMap {
 public:
  /// A rank whose host is the same in both inventories stays; other targets that share a host are matched in
  /// rank order. The cost follows the size of both inventories.
  RankMap(const rset::ResourceSet& from, const rset::ResourceSet& to);
  /// Matches targets by their names instead (target_names.hpp). Both inventories must be as they were
  /// configured. The result differs only where targets share a host.
  [[nodiscard]] static RankMap by_name(const rset::ResourceSet& from, const rset::ResourceSet& to);

  /// Returns the ranks in the other inventory, without targets that are not there.
  [[nodiscard]] text::IdSet operator()(const text::IdSet& ranks) const;
  /// Returns whether all of these ranks are the same in the other inventory.
  [[nodiscard]] bool keeps(const text::IdSet& ranks) const { return (ranks - same_).empty(); }
  /// Returns the rank of one target in the other inventory, or nothing if it is not there.
  [[nodiscard]] std::optional<text::IdSet::Id> rank_of(text::IdSet::Id rank) const;

 private:
  RankMap() = default;

  /// Ranks that are the same in both; moved_ has the new ranks of the others.
  text::IdSet same_;
  std::unordered_map<text::IdSet::Id, text::IdSet::Id> moved_;
};

/// Returns the same resources with the ranks of `targets`, to which `map` leads, without `scheduling`. Leaves
/// out the resources of other targets.
[[nodiscard]] rset::ResourceSet renumbered(const rset::ResourceSet& resources, const RankMap& map,
                                           const rset::ResourceSet& targets);

}  // namespace resourced::module

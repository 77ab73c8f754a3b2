// Where the targets of one inventory are in another, which may have other ranks and hosts: state belongs to a
// target of a host, and follows it.
#pragma once

#include <optional>
#include <unordered_map>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::module {

class RankMap {
 public:
  /// A rank whose host is the same in both stays; the other targets that share a host are matched in rank
  /// order. Costs both inventories.
  RankMap(const rset::ResourceSet& from, const rset::ResourceSet& to);

  /// The ranks in the other inventory; those of targets that are not there are left out.
  [[nodiscard]] text::IdSet operator()(const text::IdSet& ranks) const;
  /// Whether all of these ranks are the same in the other inventory.
  [[nodiscard]] bool keeps(const text::IdSet& ranks) const { return (ranks - same_).empty(); }
  /// The rank of one target in the other inventory; nothing if it is not there.
  [[nodiscard]] std::optional<text::IdSet::Id> rank_of(text::IdSet::Id rank) const;

 private:
  /// Ranks that are the same in both; moved_ has the new ranks of the others.
  text::IdSet same_;
  std::unordered_map<text::IdSet::Id, text::IdSet::Id> moved_;
};

/// The same resources in the ranks of `targets`, which `map` leads to, without `scheduling`; those of other
/// targets are left out.
[[nodiscard]] rset::ResourceSet renumbered(const rset::ResourceSet& resources, const RankMap& map,
                                           const rset::ResourceSet& targets);

}  // namespace resourced::module

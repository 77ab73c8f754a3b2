// Changes for a scheduler (RFC 28, later acquire responses), and their merge into one net change.
#pragma once

#include <optional>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::module {

struct Delta {
  /// Targets that become available and unavailable: disjoint, transitions only.
  text::IdSet up;
  text::IdSet down;
  /// Targets that left for good; they are also in `down`.
  text::IdSet shrink;
  rset::ResourceSet::Properties property_add;
  rset::ResourceSet::Properties property_remove;
  std::optional<WallTime> expiration;

  [[nodiscard]] bool empty() const noexcept;

  /// Adds a later delta and keeps only the net change: a target that went down and up again is in neither
  /// set, a property added and removed again in neither map.
  void merge(const Delta& later);

  /// Returns the part of the change that concerns these targets. The expiration concerns every target.
  [[nodiscard]] Delta restricted(const text::IdSet& targets) const;
};

/// Merges a later change of properties into `same`, the net change in its direction. A property that is in
/// `opposite`, the net change in the other direction, is removed there instead: the two changes cancel.
void merge_properties(const rset::ResourceSet::Properties& later, rset::ResourceSet::Properties& same,
                      rset::ResourceSet::Properties& opposite);

}  // namespace resourced::module

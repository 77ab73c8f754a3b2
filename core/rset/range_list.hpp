// The runs of an IdSet in a vector, for look-ups without a walk over the whole set: comparing one set with
// many others costs the runs of the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/text/idset.hpp"
#include "core/text/idset_builder.hpp"

namespace resourced::rset {

class RangeList {
 public:
  explicit RangeList(const text::IdSet& ids) {
    ids.for_each_range([this](text::IdSet::Range range) { ranges_.push_back(range); });
  }

  /// Calls f(IdSet::Range) for each maximal common run, in ascending order.
  template <class F>
  void for_each_common(const text::IdSet& other, F&& f) const {
    other.for_each_range([&](text::IdSet::Range range) {
      auto at = std::partition_point(ranges_.begin(), ranges_.end(),
                                     [&](text::IdSet::Range mine) { return mine.last < range.first; });
      for (; at != ranges_.end() && at->first <= range.last; ++at)
        f(text::IdSet::Range{std::max(at->first, range.first), std::min(at->last, range.last)});
    });
  }

  [[nodiscard]] text::IdSet common(const text::IdSet& other) const {
    text::IdSetBuilder both;
    for_each_common(other, [&](text::IdSet::Range range) { both.append(range.first, range.last); });
    return both.take();
  }

  [[nodiscard]] std::uint64_t count_common(const text::IdSet& other) const {
    std::uint64_t count = 0;
    for_each_common(other,
                    [&](text::IdSet::Range range) { count += std::uint64_t{range.last} - range.first + 1; });
    return count;
  }

 private:
  std::vector<text::IdSet::Range> ranges_;
};

}  // namespace resourced::rset

// Collects ids in any order, repeats allowed, and makes one set of them: much less work than adding each to a
// set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/text/idset.hpp"
#include "core/text/idset_builder.hpp"
#include "core/text/radix_sort.hpp"

namespace resourced::rset {

class IdCollector {
 public:
  void add(text::IdSet::Id id) { ranges_.push_back({id, id}); }
  void add(text::IdSet::Range range) { ranges_.push_back(range); }
  void add(const text::IdSet& ids) {
    ids.for_each_range([this](text::IdSet::Range range) { ranges_.push_back(range); });
  }

  /// Returns the ids that were added, and leaves the collector empty.
  [[nodiscard]] text::IdSet take() {
    const auto by_first = [](text::IdSet::Range a, text::IdSet::Range b) { return a.first < b.first; };
    if (!std::is_sorted(ranges_.begin(), ranges_.end(), by_first))
      text::radix_sort(ranges_, [](text::IdSet::Range range) { return std::uint64_t{range.first}; });
    text::IdSetBuilder ids;
    for (auto at = ranges_.begin(); at != ranges_.end();) {
      text::IdSet::Range run = *at;
      for (++at; at != ranges_.end() && at->first <= run.last; ++at) run.last = std::max(run.last, at->last);
      ids.append(run.first, run.last);
    }
    ranges_.clear();
    return ids.take();
  }

 private:
  std::vector<text::IdSet::Range> ranges_;
};

}  // namespace resourced::rset

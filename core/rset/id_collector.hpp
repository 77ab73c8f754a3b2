// Gathers ids in any order, repeats allowed, and makes a set of them at once: much less work than adding them
// to a set one after another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/text/idset.hpp"
#include "core/text/idset_builder.hpp"
#include "core/text/radix_sort.hpp"

namespace resourced {

class IdCollector {
 public:
  void add(IdSet::Id id) { ranges_.push_back({id, id}); }
  void add(IdSet::Range range) { ranges_.push_back(range); }
  void add(const IdSet& ids) {
    ids.for_each_range([this](IdSet::Range range) { ranges_.push_back(range); });
  }

  /// What was added. The collector is empty afterwards.
  [[nodiscard]] IdSet take() {
    const auto by_first = [](IdSet::Range a, IdSet::Range b) { return a.first < b.first; };
    if (!std::is_sorted(ranges_.begin(), ranges_.end(), by_first))
      radix_sort(ranges_, [](IdSet::Range range) { return std::uint64_t{range.first}; });
    IdSetBuilder ids;
    for (auto at = ranges_.begin(); at != ranges_.end();) {
      IdSet::Range run = *at;
      for (++at; at != ranges_.end() && at->first <= run.last; ++at) run.last = std::max(run.last, at->last);
      ids.append(run.first, run.last);
    }
    ranges_.clear();
    return ids.take();
  }

 private:
  std::vector<IdSet::Range> ranges_;
};

}  // namespace resourced

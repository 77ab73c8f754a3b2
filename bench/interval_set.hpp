// A set as a sorted list of its runs, nothing else: what IdSet is compared with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/text/idset.hpp"

namespace resourced::bench {

class IntervalSet {
 public:
  IntervalSet() = default;
  explicit IntervalSet(const IdSet& ids) {
    ids.for_each_range([this](IdSet::Range range) { runs_.push_back(range); });
    runs_.shrink_to_fit();
  }

  void insert(IdSet::Id id) {
    const auto at = run_at(id);
    const bool before = at != runs_.begin() && std::prev(at)->last + 1 == id;
    const bool behind = at != runs_.end() && at->first == id + 1;
    if (at != runs_.end() && at->first <= id) return;
    if (before && behind) {
      std::prev(at)->last = at->last;
      runs_.erase(at);
    } else if (before) {
      std::prev(at)->last = id;
    } else if (behind) {
      at->first = id;
    } else {
      runs_.insert(at, {id, id});
    }
  }

  void erase(IdSet::Id id) {
    const auto at = run_at(id);
    if (at == runs_.end() || at->first > id) return;
    const IdSet::Range whole = *at;
    if (whole.first == whole.last) {
      runs_.erase(at);
    } else if (whole.first == id) {
      at->first = id + 1;
    } else {
      at->last = id - 1;
      if (whole.last != id) runs_.insert(std::next(at), {id + 1, whole.last});
    }
  }

  friend IntervalSet operator|(const IntervalSet& a, const IntervalSet& b) {
    IntervalSet all;
    all.runs_.reserve(a.runs_.size() + b.runs_.size());
    auto left = a.runs_.begin();
    auto right = b.runs_.begin();
    while (left != a.runs_.end() || right != b.runs_.end()) {
      const bool from_left = right == b.runs_.end() || (left != a.runs_.end() && left->first < right->first);
      const IdSet::Range run = from_left ? *left++ : *right++;
      if (!all.runs_.empty() && run.first <= std::uint64_t{all.runs_.back().last} + 1) {
        all.runs_.back().last = std::max(all.runs_.back().last, run.last);
      } else {
        all.runs_.push_back(run);
      }
    }
    return all;
  }

  friend IntervalSet operator&(const IntervalSet& a, const IntervalSet& b) {
    IntervalSet both;
    both.runs_.reserve(std::max(a.runs_.size(), b.runs_.size()));
    for (auto left = a.runs_.begin(), right = b.runs_.begin();
         left != a.runs_.end() && right != b.runs_.end();) {
      const IdSet::Id first = std::max(left->first, right->first);
      const IdSet::Id last = std::min(left->last, right->last);
      if (first <= last) both.runs_.push_back({first, last});
      left->last < right->last ? ++left : ++right;
    }
    return both;
  }

 private:
  /// The first run that ends at or after the id.
  std::vector<IdSet::Range>::iterator run_at(IdSet::Id id) {
    return std::partition_point(runs_.begin(), runs_.end(),
                                [id](const IdSet::Range& run) { return run.last < id; });
  }

  std::vector<IdSet::Range> runs_;
};

}  // namespace resourced::bench

// Other representations of a set of ids, with which IdSet is compared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#ifdef RESOURCED_BENCH_ROARING
#include <roaring/roaring.h>
#endif

#include "core/text/idset.hpp"

namespace resourced::bench {

/// A set as a sorted vector of runs.
class IntervalSet {
 public:
  IntervalSet() = default;
  explicit IntervalSet(const text::IdSet& ids) {
    ids.for_each_range([this](text::IdSet::Range range) { runs_.push_back(range); });
    runs_.shrink_to_fit();
  }

  void insert(text::IdSet::Id id) {
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

  void erase(text::IdSet::Id id) {
    const auto at = run_at(id);
    if (at == runs_.end() || at->first > id) return;
    const text::IdSet::Range whole = *at;
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
      const text::IdSet::Range run = from_left ? *left++ : *right++;
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
      const text::IdSet::Id first = std::max(left->first, right->first);
      const text::IdSet::Id last = std::min(left->last, right->last);
      if (first <= last) both.runs_.push_back({first, last});
      left->last < right->last ? ++left : ++right;
    }
    return both;
  }

 private:
  /// Returns the first run that ends at or after the id.
  std::vector<text::IdSet::Range>::iterator run_at(text::IdSet::Id id) {
    return std::partition_point(runs_.begin(), runs_.end(),
                                [id](const text::IdSet::Range& run) { return run.last < id; });
  }

  std::vector<text::IdSet::Range> runs_;
};

/// A set with one bit for each id below its span.
class DenseSet {
 public:
  explicit DenseSet(const text::IdSet& ids) : words_(ids.empty() ? 0 : ids.last() / 64U + 1U) {
    ids.for_each([this](text::IdSet::Id id) { insert(id); });
  }

  void insert(text::IdSet::Id id) { words_[id / 64U] |= std::uint64_t{1} << (id % 64U); }
  void erase(text::IdSet::Id id) { words_[id / 64U] &= ~(std::uint64_t{1} << (id % 64U)); }

  /// Requires sets of the same span.
  friend DenseSet operator|(DenseSet a, const DenseSet& b) {
    for (std::size_t i = 0; i < b.words_.size(); ++i) a.words_[i] |= b.words_[i];
    return a;
  }
  friend DenseSet operator&(DenseSet a, const DenseSet& b) {
    for (std::size_t i = 0; i < b.words_.size(); ++i) a.words_[i] &= b.words_[i];
    return a;
  }

 private:
  std::vector<std::uint64_t> words_;
};

#ifdef RESOURCED_BENCH_ROARING
/// A compressed bitmap of CRoaring, where libroaring-dev is installed.
class RoaringSet {
 public:
  explicit RoaringSet(const text::IdSet& ids) : RoaringSet(roaring_bitmap_create()) {
    ids.for_each_range([this](text::IdSet::Range run) {
      roaring_bitmap_add_range_closed(bitmap_.get(), run.first, run.last);
    });
    roaring_bitmap_run_optimize(bitmap_.get());
    roaring_bitmap_shrink_to_fit(bitmap_.get());
  }

  void insert(text::IdSet::Id id) { roaring_bitmap_add(bitmap_.get(), id); }
  void erase(text::IdSet::Id id) { roaring_bitmap_remove(bitmap_.get(), id); }

  friend RoaringSet operator|(const RoaringSet& a, const RoaringSet& b) {
    return RoaringSet(roaring_bitmap_or(a.bitmap_.get(), b.bitmap_.get()));
  }
  friend RoaringSet operator&(const RoaringSet& a, const RoaringSet& b) {
    return RoaringSet(roaring_bitmap_and(a.bitmap_.get(), b.bitmap_.get()));
  }

 private:
  explicit RoaringSet(roaring_bitmap_t* bitmap) : bitmap_(bitmap, &roaring_bitmap_free) {}

  std::shared_ptr<roaring_bitmap_t> bitmap_;
};
#endif

}  // namespace resourced::bench

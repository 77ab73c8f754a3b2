// A compressed bitmap of CRoaring: what IdSet is compared with, where libroaring-dev is installed.
#pragma once

#include <cstddef>
#include <memory>

#include <roaring/roaring.h>

#include "core/text/idset.hpp"

namespace resourced::bench {

class RoaringSet {
 public:
  explicit RoaringSet(const IdSet& ids) : RoaringSet(roaring_bitmap_create()) {
    ids.for_each_range(
        [this](IdSet::Range run) { roaring_bitmap_add_range_closed(bitmap_.get(), run.first, run.last); });
    roaring_bitmap_run_optimize(bitmap_.get());
    roaring_bitmap_shrink_to_fit(bitmap_.get());
  }

  void insert(IdSet::Id id) { roaring_bitmap_add(bitmap_.get(), id); }
  void erase(IdSet::Id id) { roaring_bitmap_remove(bitmap_.get(), id); }

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

}  // namespace resourced::bench

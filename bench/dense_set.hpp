// A set as one bit for each id below its span: what IdSet is compared with.
#pragma once

#include <cstdint>
#include <vector>

#include "core/text/idset.hpp"

namespace resourced::bench {

class DenseSet {
 public:
  explicit DenseSet(const IdSet& ids) : words_(ids.empty() ? 0 : ids.last() / 64U + 1U) {
    ids.for_each([this](IdSet::Id id) { insert(id); });
  }

  void insert(IdSet::Id id) { words_[id / 64U] |= std::uint64_t{1} << (id % 64U); }
  void erase(IdSet::Id id) { words_[id / 64U] &= ~(std::uint64_t{1} << (id % 64U)); }

  /// Both have the same span.
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

}  // namespace resourced::bench

// Makes an IdSet from ids that come in ascending order, in time proportional to the runs.
#pragma once

#include <memory>
#include <vector>

#include "core/text/idset.hpp"

namespace resourced::text {

class IdSetBuilder {
 public:
  using Id = IdSet::Id;

  /// Adds the ids from first to last. Requires that first is above everything added before.
  void append(Id first, Id last) {
    // Fast path for a long list of single ids.
    if (first == last && !words_.empty() && first - base_ < IdBlock::size) {
      words_[(first - base_) / 64U] |= std::uint64_t{1} << (first % 64U);
    } else if (first / IdBlock::size == last / IdBlock::size) {
      append_in_block(first, last);
    } else {
      append_in_blocks(first, last);
    }
  }
  /// Adds the ids of a block. Requires that nothing was added from its base on.
  void append(Id base, std::unique_ptr<IdBlock> block);

  /// Returns the ids that were added, and leaves the builder empty.
  [[nodiscard]] IdSet take();

 private:
  friend class IdSet;

  void append_in_block(Id first, Id last) {
    const Id base = first / IdBlock::size * IdBlock::size;
    if (base != base_) finish_block();
    base_ = base;
    const IdBlock::Span span{static_cast<std::uint16_t>(first - base),
                             static_cast<std::uint16_t>(last - base)};
    if (!words_.empty()) {
      IdBlock::set_bits(words_.data(), span);
    } else if (!spans_.empty() && spans_.back().last + 1U == span.first) {
      spans_.back().last = span.last;
    } else {
      spans_.push_back(span);
      if (spans_.size() > IdBlock::most_spans) spread();
    }
  }
  void spread();
  void append_in_blocks(Id first, Id last);
  void append_solid(Id first, Id last);
  void finish_block();

  IdSet::Parts parts_;
  // The block that is being filled, as spans or as words like an IdBlock, and its base.
  std::vector<IdBlock::Span> spans_;
  std::vector<std::uint64_t> words_;
  Id base_ = 0;
};

}  // namespace resourced::text

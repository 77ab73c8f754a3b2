#include "core/text/idset_builder.hpp"

#include <utility>

namespace resourced::text {

void IdSetBuilder::append_in_blocks(Id first, Id last) {
  const Id rest_of_block = first | (IdBlock::size - 1);
  const Id last_block = last / IdBlock::size * IdBlock::size;
  append_in_block(first, rest_of_block);
  if (rest_of_block + 1 < last_block) {
    finish_block();
    append_solid(rest_of_block + 1, last_block - 1);
  }
  append_in_block(last_block, last);
}

void IdSetBuilder::append(Id base, std::unique_ptr<IdBlock> block) {
  if (block->runs() == 0) return;
  if (block->runs() == 1) {
    append(base + block->first(), base + block->last());
    return;
  }
  finish_block();
  parts_.emplace_back(base, std::move(block));
}

void IdSetBuilder::append_solid(Id first, Id last) {
  if (!parts_.empty() && !parts_.back().block && parts_.back().last + 1 == first) {
    parts_.back().last = last;
  } else {
    parts_.emplace_back(first, last);
  }
}

/// Converts the current block from spans to a bit for each id.
void IdSetBuilder::spread() {
  words_.assign(IdBlock::word_count, 0);
  for (const IdBlock::Span span : spans_) IdBlock::set_bits(words_.data(), span);
  spans_.clear();
}

void IdSetBuilder::finish_block() {
  if (!words_.empty()) {
    parts_.emplace_back(base_, std::make_unique<IdBlock>(std::exchange(words_, {})));
  } else if (spans_.size() == 1) {
    append_solid(base_ + spans_.front().first, base_ + spans_.front().last);
  } else if (spans_.size() > 1) {
    parts_.emplace_back(base_, std::make_unique<IdBlock>(spans_));
  }
  spans_.clear();
}

IdSet IdSetBuilder::take() {
  finish_block();
  IdSet ids;
  ids.parts_ = std::exchange(parts_, {});
  return ids;
}

}  // namespace resourced::text

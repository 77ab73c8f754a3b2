#include "core/text/idset.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "core/text/idset_builder.hpp"
#include "core/text/idset_walk.hpp"

namespace resourced::text {

namespace {

std::uint16_t offset(IdSet::Id id) { return static_cast<std::uint16_t>(id % IdBlock::size); }

/// Returns the set as one range, if it has no gaps. Most changes concern one target and then need no walk
/// over two sets.
std::optional<IdSet::Range> whole_range(const IdSet& ids) {
  if (ids.empty() || ids.count() != std::size_t{ids.last()} - ids.first() + 1) return std::nullopt;
  return IdSet::Range{ids.first(), ids.last()};
}

bool has_one_id(const IdSet& ids) { return !ids.empty() && ids.first() == ids.last(); }

}  // namespace

IdSet::Part::Part(Id base, std::unique_ptr<IdBlock> ids)
    : first(base + ids->first()), last(base + ids->last()), block(std::move(ids)) {}

IdSet::Part::Part(const Part& other)
    : first(other.first),
      last(other.last),
      block(other.block ? std::make_unique<IdBlock>(*other.block) : nullptr) {}

IdSet::Part& IdSet::Part::operator=(const Part& other) {
  if (this != &other) *this = Part(other);
  return *this;
}

std::size_t IdSet::Part::count() const noexcept {
  return block ? std::size_t{block->count()} : std::size_t{last} - first + 1;
}

bool IdSet::Part::operator==(const Part& other) const noexcept {
  if (first != other.first || last != other.last || !block != !other.block) return false;
  return !block || *block == *other.block;
}

IdSet::IdSet(std::initializer_list<Id> ids) {
  for (const Id id : ids) insert(id);
}

IdSet IdSet::range(Id first, Id last) {
  assert(first <= last && last <= max_id);
  IdSet ids;
  ids.parts_.emplace_back(first, last);
  return ids;
}

bool IdSet::empty() const noexcept { return parts_.empty(); }

std::size_t IdSet::count() const noexcept {
  std::size_t count = 0;
  for (const Part& part : parts_) count += part.count();
  return count;
}

IdSet::Parts::iterator IdSet::part_at_or_after(Id id) noexcept {
  return std::partition_point(parts_.begin(), parts_.end(),
                              [id](const Part& part) { return part.last < id; });
}

IdSet::Parts::const_iterator IdSet::part_at_or_after(Id id) const noexcept {
  return std::partition_point(parts_.begin(), parts_.end(),
                              [id](const Part& part) { return part.last < id; });
}

bool IdSet::contains(Id id) const noexcept {
  const auto part = part_at_or_after(id);
  if (part == parts_.end() || id < part->first) return false;
  return !part->block || part->block->contains(offset(id));
}

IdSet::Id IdSet::first() const {
  assert(!empty());
  return parts_.front().first;
}

IdSet::Id IdSet::last() const {
  assert(!empty());
  return parts_.back().last;
}

std::optional<IdSet::Id> IdSet::at_or_after(Id id) const noexcept {
  const auto part = part_at_or_after(id);
  if (part == parts_.end()) return std::nullopt;
  if (id <= part->first) return part->first;
  if (!part->block) return id;
  return part->base() + *part->block->at_or_after(offset(id));
}

std::optional<IdSet::Id> IdSet::first_shared(const IdSet& other) const {
  std::optional<Id> first;
  for_each_range([&](Range run) {
    if (first) return;
    const auto found = other.at_or_after(run.first);
    if (found && *found <= run.last) first = found;
  });
  return first;
}

void IdSet::insert(Id id) { insert(id, id); }

void IdSet::insert(Id first, Id last) {
  assert(first <= last && last <= max_id);
  if (!parts_.empty() && !parts_.back().block && parts_.back().first <= first &&
      first <= parts_.back().last + 1) {
    parts_.back().last = std::max(parts_.back().last, last);
    return;
  }
  if (first == last && change_in_block(SetOp::unite, first)) return;
  change(SetOp::unite, first, last);
}

void IdSet::erase(Id id) { erase(id, id); }

void IdSet::erase(Id first, Id last) {
  assert(first <= last);
  if (first == last && (erase_at_end(first) || change_in_block(SetOp::subtract, first))) return;
  change(SetOp::subtract, first, std::min(last, max_id));
}

void IdSet::clear() noexcept { parts_.clear(); }

/// Erases an id that is the first or the last one of a solid part. Returns false, and changes nothing, for
/// any other id.
bool IdSet::erase_at_end(Id id) {
  const auto part = part_at_or_after(id);
  if (part == parts_.end() || part->block || (id != part->first && id != part->last)) return false;
  if (part->first == part->last) {
    parts_.erase(part);
  } else if (id == part->first) {
    ++part->first;
  } else {
    --part->last;
  }
  return true;
}

/// Inserts or erases an id in its block, at the cost of that block. Returns false, and changes nothing, if
/// the result might no longer be a block.
bool IdSet::change_in_block(SetOp op, Id id) {
  auto part = part_at_or_after(id / IdBlock::size * IdBlock::size);
  if (part == parts_.end() || !part->block || part->base() != id / IdBlock::size * IdBlock::size)
    return false;
  IdBlock& block = *part->block;
  if (block.runs() <= 2) return false;
  if (op == SetOp::unite) {
    block.insert(offset(id));
    part->first = std::min(part->first, id);
    part->last = std::max(part->last, id);
  } else {
    const Id base = part->base();
    block.erase(offset(id));
    if (id == part->first) part->first = base + block.first();
    if (id == part->last) part->last = base + block.last();
  }
  return true;
}

/// Unites with a range or subtracts it, touching only the parts in its blocks and those that may join them.
void IdSet::change(SetOp op, Id first, Id last) {
  const Id block_first = first / IdBlock::size * IdBlock::size;
  const Id block_last = last | (IdBlock::size - 1);
  const auto from = part_at_or_after(block_first > 0 ? block_first - 1 : 0);
  const auto to = std::partition_point(from, parts_.end(), [block_last](const Part& part) {
    return part.first <= block_last || part.first - 1 == block_last;
  });
  IdSet touched;
  touched.parts_.assign(std::move_iterator(from), std::move_iterator(to));
  touched.combine(op, range(first, last));
  const auto same = std::min<std::ptrdiff_t>(to - from, std::ssize(touched.parts_));
  const auto source = std::move_iterator(touched.parts_.begin());
  std::copy(source, source + same, from);
  if (same == to - from) {
    parts_.insert(to, source + same, std::move_iterator(touched.parts_.end()));
  } else {
    parts_.erase(from + same, to);
  }
}

IdSet& IdSet::combine(SetOp op, const IdSet& other) {
  if (&other == this) {
    if (op == SetOp::subtract) clear();
    return *this;
  }
  IdSetBuilder result;
  const auto on_range = [&](Id first, Id last, bool mine, bool theirs) {
    if (keeps(op, mine, theirs)) result.append(first, last);
    return true;
  };
  const auto on_block = [&](Id base, const Walk::Side& mine, const Walk::Side& theirs) {
    if (mine.empty() || theirs.empty()) {
      if (!keeps(op, !mine.empty(), !theirs.empty())) return true;
      result.append(
          base, mine.empty() ? std::make_unique<IdBlock>(*theirs.block) : std::move(parts_[mine.part].block));
      return true;
    }
    std::unique_ptr<IdBlock> block = mine.block != nullptr
                                         ? std::move(parts_[mine.part].block)
                                         : std::make_unique<IdBlock>(std::vector<IdBlock::Span>{mine.piece});
    block->apply(op, theirs.view());
    result.append(base, std::move(block));
    return true;
  };
  Walk(*this, other).each(on_range, on_block);
  return *this = result.take();
}

IdSet& IdSet::operator|=(const IdSet& other) {
  const auto range = whole_range(other);
  if (!range) return combine(SetOp::unite, other);
  insert(range->first, range->last);
  return *this;
}

IdSet& IdSet::operator&=(const IdSet& other) {
  if (!has_one_id(*this)) return combine(SetOp::intersect, other);
  if (!other.contains(first())) clear();
  return *this;
}

IdSet& IdSet::operator-=(const IdSet& other) {
  if (has_one_id(*this)) {
    if (other.contains(first())) clear();
  } else if (const auto range = whole_range(other)) {
    erase(range->first, range->last);
  } else {
    combine(SetOp::subtract, other);
  }
  return *this;
}

bool operator==(const IdSet& a, const IdSet& b) { return a.parts_ == b.parts_; }

bool IdSet::intersects(const IdSet& other) const noexcept {
  return !Walk(*this, other)
              .each([](Id, Id, bool mine, bool theirs) { return !(mine && theirs); },
                    [](Id, const Walk::Side& mine, const Walk::Side& theirs) {
                      return !IdBlock::intersect(mine.view(), theirs.view());
                    });
}

bool IdSet::includes(const IdSet& other) const noexcept {
  return Walk(*this, other)
      .each([](Id, Id, bool mine, bool theirs) { return mine || !theirs; },
            [](Id, const Walk::Side& mine, const Walk::Side& theirs) {
              return IdBlock::includes(mine.view(), theirs.view());
            });
}

}  // namespace resourced::text

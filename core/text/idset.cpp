#include "core/text/idset.hpp"

#include <algorithm>
#include <cassert>

namespace resourced {

IdSet::IdSet(std::initializer_list<Id> ids) {
  for (const Id id : ids) insert(id);
}

IdSet IdSet::range(Id first, Id last) {
  IdSet ids;
  ids.insert(first, last);
  return ids;
}

bool IdSet::empty() const noexcept { return ranges_.empty(); }

std::size_t IdSet::count() const noexcept { return count_; }

bool IdSet::contains(Id id) const noexcept { return at_or_after(id) == id; }

IdSet::Id IdSet::first() const {
  assert(!empty());
  return ranges_.front().first;
}

IdSet::Id IdSet::last() const {
  assert(!empty());
  return ranges_.back().last;
}

std::optional<IdSet::Id> IdSet::at_or_after(Id id) const noexcept {
  const auto at = std::partition_point(ranges_.begin(), ranges_.end(), [id](Range r) { return r.last < id; });
  if (at == ranges_.end()) return std::nullopt;
  return std::max(at->first, id);
}

void IdSet::insert(Id id) { insert(id, id); }

void IdSet::insert(Id first, Id last) {
  assert(first <= last && last <= max_id);
  const auto from = std::partition_point(ranges_.begin(), ranges_.end(),
                                         [first](Range r) { return r.last < first && r.last + 1 < first; });
  const auto to = std::partition_point(from, ranges_.end(), [last](Range r) { return r.first <= last + 1; });
  Range merged{first, last};
  for (auto at = from; at != to; ++at) {
    merged = {std::min(merged.first, at->first), std::max(merged.last, at->last)};
    count_ -= std::size_t{at->last} - at->first + 1;
  }
  count_ += std::size_t{merged.last} - merged.first + 1;
  if (from == to) {
    ranges_.insert(from, merged);
  } else {
    *from = merged;
    ranges_.erase(from + 1, to);
  }
}

void IdSet::erase(Id id) { erase(id, id); }

void IdSet::erase(Id first, Id last) { *this -= range(first, last); }

void IdSet::clear() noexcept {
  ranges_.clear();
  count_ = 0;
}

IdSet& IdSet::operator|=(const IdSet& other) {
  const std::vector<Range> ranges = other.ranges_;
  for (const Range range : ranges) insert(range.first, range.last);
  return *this;
}

IdSet& IdSet::operator&=(const IdSet& other) {
  IdSet both;
  for (auto a = ranges_.cbegin(), b = other.ranges_.begin(); a != ranges_.cend() && b != other.ranges_.end();) {
    const Range range{std::max(a->first, b->first), std::min(a->last, b->last)};
    if (range.first <= range.last) both.insert(range.first, range.last);
    (a->last < b->last ? a : b)++;
  }
  return *this = both;
}

IdSet& IdSet::operator-=(const IdSet& other) {
  IdSet left;
  auto b = other.ranges_.begin();
  for (Range range : ranges_) {
    while (b != other.ranges_.end() && b->last < range.first) ++b;
    auto hole = b;
    bool rest = true;
    for (; rest && hole != other.ranges_.end() && hole->first <= range.last; ++hole) {
      if (range.first < hole->first) left.insert(range.first, hole->first - 1);
      rest = hole->last < range.last;
      if (rest) range.first = hole->last + 1;
    }
    if (rest) left.insert(range.first, range.last);
  }
  return *this = left;
}

bool operator==(const IdSet& a, const IdSet& b) { return a.ranges_ == b.ranges_; }

bool IdSet::intersects(const IdSet& other) const noexcept {
  for (auto a = ranges_.begin(), b = other.ranges_.begin(); a != ranges_.end() && b != other.ranges_.end();) {
    if (std::max(a->first, b->first) <= std::min(a->last, b->last)) return true;
    (a->last < b->last ? a : b)++;
  }
  return false;
}

bool IdSet::includes(const IdSet& other) const noexcept {
  auto a = ranges_.begin();
  for (const Range range : other.ranges_) {
    while (a != ranges_.end() && a->last < range.first) ++a;
    if (a == ranges_.end() || range.first < a->first || a->last < range.last) return false;
  }
  return true;
}

}  // namespace resourced

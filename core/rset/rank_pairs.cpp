#include "core/rset/rank_pairs.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "core/text/idset_builder.hpp"

namespace resourced::rset {

using text::IdSet;

namespace {

struct Run {
  IdSet::Id first;
  IdSet::Id last;
  const ResourceGroup* group;
};

std::vector<Run> runs_of(const ResourceSet& set) {
  std::vector<Run> runs;
  for (const ResourceGroup& group : set.groups())
    group.ranks.for_each_range([&](IdSet::Range range) {
      runs.push_back({range.first, range.last, &group});
    });
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
  return runs;
}

}  // namespace

void for_each_pair(
    const ResourceSet& a, const ResourceSet& b,
    const std::function<void(const IdSet& ranks, const ResourceGroup* a, const ResourceGroup* b)>& f) {
  std::vector<Run> left = runs_of(a);
  std::vector<Run> right = runs_of(b);
  std::map<std::pair<const ResourceGroup*, const ResourceGroup*>, std::size_t> numbers;
  struct Pair {
    text::IdSetBuilder ranks;
    const ResourceGroup* a;
    const ResourceGroup* b;
  };
  std::vector<Pair> pairs;
  const auto add = [&](IdSet::Id first, IdSet::Id last, const ResourceGroup* x, const ResourceGroup* y) {
    const auto [at, is_new] = numbers.try_emplace({x, y}, pairs.size());
    if (is_new) pairs.push_back({{}, x, y});
    pairs[at->second].ranks.append(first, last);
  };

  auto x = left.begin();
  auto y = right.begin();
  while (x != left.end() || y != right.end()) {
    if (y == right.end() || (x != left.end() && x->last < y->first)) {
      add(x->first, x->last, x->group, nullptr);
      ++x;
    } else if (x == left.end() || y->last < x->first) {
      add(y->first, y->last, nullptr, y->group);
      ++y;
    } else if (x->first < y->first) {
      add(x->first, y->first - 1, x->group, nullptr);
      x->first = y->first;
    } else if (y->first < x->first) {
      add(y->first, x->first - 1, nullptr, y->group);
      y->first = x->first;
    } else {
      const IdSet::Id last = std::min(x->last, y->last);
      add(x->first, last, x->group, y->group);
      x->first = y->first = last + 1;
      if (x->last == last) ++x;
      if (y->last == last) ++y;
    }
  }
  for (Pair& pair : pairs) f(pair.ranks.take(), pair.a, pair.b);
}

}  // namespace resourced::rset

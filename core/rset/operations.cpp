#include "core/rset/operations.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/id_collector.hpp"
#include "core/rset/targets.hpp"
#include "core/text/idset_builder.hpp"
#include "core/text/quote.hpp"

namespace resourced::rset {

using text::Hostlist;
using text::IdSet;

namespace {

/// Makes a set of these parts, and of the members of `from` that belong to no rank.
ResourceSet assemble(std::vector<ResourceGroup> groups, Hostlist hosts,
                     const ResourceSet::Properties& properties, const ResourceSet& from) {
  ResourceSet set(std::move(groups), std::move(hosts));
  for (const auto& [name, ranks] : properties) set.add_property(name, ranks);
  set.inherit(from);
  return set;
}

ResourceSet::Properties limited(const ResourceSet::Properties& properties, const IdSet& ranks) {
  ResourceSet::Properties kept;
  for (const auto& [name, holders] : properties) kept.emplace(name, holders & ranks);
  return kept;
}

ResourceSet::Properties united(ResourceSet::Properties a, const ResourceSet::Properties& b) {
  for (const auto& [name, ranks] : b) a[name] |= ranks;
  return a;
}

IdSet ranks_of(const std::vector<ResourceGroup>& groups) {
  IdCollector ranks;
  for (const ResourceGroup& group : groups) ranks.add(group.ranks);
  return ranks.take();
}

void check_hosts(const ResourceSet& a, const ResourceSet& b) {
  const IdSet ranks = a.ranks() & b.ranks();
  if (a.hosts(ranks) == b.hosts(ranks)) return;
  ranks.for_each([&](IdSet::Id rank) {
    if (a.host(rank) != b.host(rank))
      throw Error(EINVAL, fmt::format("rank {} is host {} in one set and {} in another", rank, a.host(rank),
                                      b.host(rank)));
  });
}

/// Returns the hosts of the ranks of both sets, in rank order.
Hostlist merged_hosts(const ResourceSet& a, const ResourceSet& b) {
  struct Piece {
    IdSet::Range ranks;
    const ResourceSet* set;
  };
  std::vector<Piece> pieces;
  a.ranks().for_each_range([&](IdSet::Range range) { pieces.push_back({range, &a}); });
  (b.ranks() - a.ranks()).for_each_range([&](IdSet::Range range) { pieces.push_back({range, &b}); });
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& x, const Piece& y) { return x.ranks.first < y.ranks.first; });
  Hostlist hosts;
  for (const Piece& piece : pieces) {
    if (piece.ranks.first == piece.ranks.last) {
      hosts.append(piece.set->host(piece.ranks.first));
    } else {
      hosts.append(piece.set->hosts(IdSet::range(piece.ranks.first, piece.ranks.last)));
    }
  }
  return hosts;
}

}  // namespace

ResourceSet append(const ResourceSet& a, const ResourceSet& b) {
  check_hosts(a, b);
  std::vector<ResourceGroup> groups = a.groups();
  groups.insert(groups.end(), b.groups().begin(), b.groups().end());
  ResourceSet set =
      assemble(std::move(groups), merged_hosts(a, b), united(a.properties(), b.properties()), a);
  set.inherit(b);
  return set;
}

ResourceSet diff(const ResourceSet& a, const ResourceSet& b) {
  check_hosts(a, b);
  std::vector<ResourceGroup> groups;
  for_each_pair(a, b, [&](const IdSet& ranks, const ResourceGroup* mine, const ResourceGroup* other) {
    if (mine == nullptr) return;
    ResourceGroup left{ranks, mine->cores, mine->gpus, mine->extra};
    if (other != nullptr) {
      left.cores -= other->cores;
      left.gpus -= other->gpus;
    }
    if (!left.cores.empty() || !left.gpus.empty()) groups.push_back(std::move(left));
  });
  const IdSet ranks = ranks_of(groups);
  return assemble(std::move(groups), a.hosts(ranks), limited(a.properties(), ranks), a);
}

ResourceSet intersect(const ResourceSet& a, const ResourceSet& b) {
  check_hosts(a, b);
  std::vector<ResourceGroup> groups;
  for_each_pair(a, b, [&](const IdSet& ranks, const ResourceGroup* x, const ResourceGroup* y) {
    if (x == nullptr || y == nullptr) return;
    ResourceGroup both{ranks, x->cores & y->cores, x->gpus & y->gpus, x->extra ? x->extra : y->extra};
    if (!both.cores.empty() || !both.gpus.empty()) groups.push_back(std::move(both));
  });
  const IdSet ranks = ranks_of(groups);
  ResourceSet set =
      assemble(std::move(groups), a.hosts(ranks), limited(united(a.properties(), b.properties()), ranks), a);
  set.inherit(b);
  return set;
}

ResourceSet include(const ResourceSet& set, std::string_view targets) {
  return set.copy_ranks(parse_targets(targets, set));
}

ResourceSet exclude(const ResourceSet& set, std::string_view targets) {
  return set.copy_ranks(set.ranks() - parse_targets(targets, set));
}

ResourceSet::Properties new_properties(const ResourceSet& set, const ResourceSet& before) {
  ResourceSet::Properties result;
  for (const auto& [name, ranks] : set.properties()) {
    const auto old = before.properties().find(name);
    IdSet fresh = old == before.properties().end() ? ranks : ranks - old->second;
    if (!fresh.empty()) result.emplace(name, std::move(fresh));
  }
  return result;
}

IdSet ranks_with_properties(const ResourceSet& set, std::string_view names) {
  IdSet ranks = set.ranks();
  while (true) {
    const std::size_t comma = names.find(',');
    std::string_view name = names.substr(0, comma);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    if (name.empty()) throw Error(EINVAL, "a property name is empty");
    const auto property = set.properties().find(name);
    const IdSet holders = property == set.properties().end() ? IdSet() : property->second;
    if (negated) {
      ranks -= holders;
    } else {
      ranks &= holders;
    }
    if (comma == std::string_view::npos) return ranks;
    names.remove_prefix(comma + 1);
  }
}

ResourceSet remap(const ResourceSet& set) {
  std::vector<ResourceGroup> groups = set.groups();
  for (ResourceGroup& group : groups) group.ranks = set.positions_of(group.ranks);
  ResourceSet::Properties properties = set.properties();
  for (auto& [name, ranks] : properties) ranks = set.positions_of(ranks);
  ResourceSet renumbered = assemble(std::move(groups), set.nodelist(), properties, set);
  renumbered.set_nslots(set.nslots());
  return renumbered;
}

ResourceSet renumber_cores(const ResourceSet& set) {
  std::vector<ResourceGroup> groups = set.groups();
  for (ResourceGroup& group : groups) {
    if (!group.cores.empty()) group.cores = IdSet::range(0, static_cast<IdSet::Id>(group.cores.count() - 1));
  }
  ResourceSet renumbered = assemble(std::move(groups), set.nodelist(), set.properties(), set);
  renumbered.set_nslots(set.nslots());
  return renumbered;
}

void set_property(ResourceSet& set, std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    set.add_property(text, set.ranks());
    return;
  }
  IdSet ranks;
  try {
    ranks = IdSet::parse(text.substr(colon + 1));
  } catch (const Error& error) {
    throw Error(EINVAL, fmt::format("property {}: {}", text::quoted(text.substr(0, colon)), error.what()));
  }
  if (ranks.empty())
    throw Error(EINVAL, fmt::format("property {}: idset is empty", text::quoted(text.substr(0, colon))));
  set.add_property(text.substr(0, colon), ranks);
}

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

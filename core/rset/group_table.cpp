#include "core/rset/group_table.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/quote.hpp"

namespace resourced::rset {

using nlohmann::json;
using text::IdSet;

namespace {

constexpr GroupTable::Children no_children = std::numeric_limits<GroupTable::Children>::max();

// Maximum work for overlapping entries: well above what one entry per core of a large cluster needs.
constexpr std::size_t max_overlay_work = std::size_t{1} << 23;

void collect(const IdSet& ids, std::vector<IdSet::Range>& ranges) {
  ids.for_each_range([&](IdSet::Range range) { ranges.push_back(range); });
}

/// Returns the union of runs given in any order; `twice` becomes a run that occurs more than once.
IdSet unite(std::vector<IdSet::Range> ranges, std::optional<IdSet::Range>& twice) {
  std::sort(ranges.begin(), ranges.end(), [](IdSet::Range a, IdSet::Range b) { return a.first < b.first; });
  IdSet ids;
  for (const IdSet::Range range : ranges) {
    if (!twice && !ids.empty() && range.first <= ids.last())
      twice = IdSet::Range{range.first, std::min(range.last, ids.last())};
    ids.insert(range.first, range.last);
  }
  return ids;
}

}  // namespace

/// Cuts overlapping runs into pieces, each with the union of the children of the runs that cover it.
class GroupTable::Overlay {
 public:
  Overlay(GroupTable& table, Repeats repeats, const Describe& describe)
      : table_(table), repeats_(repeats), describe_(describe) {}

  /// Takes runs sorted by their first rank and gives disjoint ones.
  std::vector<Run> cut(const std::vector<Run>& runs) {
    auto next = runs.begin();
    IdSet::Id at = 0;
    while (next != runs.end() || !active_.empty()) {
      if (active_.empty()) at = next->first;
      for (; next != runs.end() && next->first == at; ++next) active_.push_back(*next);
      IdSet::Id end = active_.front().last;
      for (const Run& run : active_) end = std::min(end, run.last);
      if (next != runs.end()) end = std::min(end, next->first - 1);
      out_.push_back({at, end, combined(at), 0});
      std::erase_if(active_, [end](const Run& run) { return run.last == end; });
      at = end + 1;
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(IdSet::Id rank, std::string text) const {
    std::uint32_t source = 0;
    for (const Run& run : active_) source = std::max(source, run.source);
    throw describe_({rank, source, std::move(text)});
  }

  void spend(IdSet::Id rank, std::size_t work) {
    work_ += work;
    if (work_ > max_overlay_work) fail(rank, "is one of too many ranks in several entries");
  }

  Children combined(IdSet::Id rank) {
    if (active_.size() == 1) return active_.front().children;
    spend(rank, active_.size());
    std::vector<Children> parts;
    for (const Run& run : active_) parts.push_back(run.children);
    std::sort(parts.begin(), parts.end());
    if (repeats_ == Repeats::allowed) parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    const auto [known, is_new] = combinations_.try_emplace(std::move(parts), no_children);
    if (is_new) known->second = unite_all(rank, known->first);
    return known->second;
  }

  Children unite_all(IdSet::Id rank, const std::vector<Children>& parts) {
    std::vector<IdSet::Range> cores;
    std::vector<IdSet::Range> gpus;
    std::shared_ptr<const json> extra;
    for (const Children part : parts) {
      const Resources& resources = table_.resources_[part];
      collect(resources.cores, cores);
      collect(resources.gpus, gpus);
      extra = merged(rank, extra, resources.extra);
      if (cores.size() + gpus.size() > max_overlay_work) break;
    }
    spend(rank, cores.size() + gpus.size());
    return table_.children(unite(rank, "core", std::move(cores)), unite(rank, "gpu", std::move(gpus)), extra);
  }

  IdSet unite(IdSet::Id rank, std::string_view type, std::vector<IdSet::Range> ranges) const {
    std::optional<IdSet::Range> twice;
    IdSet ids = resourced::rset::unite(std::move(ranges), twice);
    if (twice && repeats_ == Repeats::refused)
      fail(rank, fmt::format("has {} {} twice", type, IdSet::range(twice->first, twice->last).encode()));
    return ids;
  }

  std::shared_ptr<const json> merged(IdSet::Id rank, const std::shared_ptr<const json>& a,
                                     const std::shared_ptr<const json>& b) const {
    if (!a || !b || a == b) return a ? a : b;
    json both = *a;
    for (const auto& [place, keys] : b->items()) {
      for (const auto& [key, value] : keys.items()) {
        json& slot = both[place];
        if (slot.contains(key) && slot[key] != value)
          fail(rank, fmt::format("has two values for {}", text::quoted(std::string_view(key))));
        slot[key] = value;
      }
    }
    return std::make_shared<const json>(std::move(both));
  }

  GroupTable& table_;
  Repeats repeats_;
  const Describe& describe_;
  std::vector<Run> active_;
  std::vector<Run> out_;
  std::map<std::vector<Children>, Children> combinations_;
  std::size_t work_ = 0;
};

std::string GroupTable::key_of(const Resources& resources) {
  std::string key;
  resources.cores.encode_to(key);
  key += '/';
  resources.gpus.encode_to(key);
  if (resources.extra) {
    key += '/';
    key += resources.extra->dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return key;
}

GroupTable::Children GroupTable::children(IdSet cores, IdSet gpus, std::shared_ptr<const json> extra) {
  Resources resources{std::move(cores), std::move(gpus), std::move(extra), {}, {}};
  const auto number = static_cast<Children>(resources_.size());
  // Most sets have one kind of resources, which needs no search.
  if (number > 0) {
    if (numbers_.empty()) numbers_.emplace(key_of(resources_.front()), 0);
    const auto [at, is_new] = numbers_.try_emplace(key_of(resources), number);
    if (!is_new) return at->second;
  }
  resources_.push_back(std::move(resources));
  return number;
}

void GroupTable::add(const IdSet& ranks, Children children, std::size_t source) {
  ranks.for_each_range([&](IdSet::Range range) {
    runs_.push_back({range.first, range.last, children, static_cast<std::uint32_t>(source)});
  });
}

std::vector<ResourceGroup> GroupTable::finish(Repeats repeats, const Describe& describe) {
  const auto by_first = [](const Run& a, const Run& b) { return a.first < b.first; };
  if (!std::is_sorted(runs_.begin(), runs_.end(), by_first))
    std::stable_sort(runs_.begin(), runs_.end(), by_first);
  const auto overlap = std::adjacent_find(runs_.begin(), runs_.end(),
                                          [](const Run& a, const Run& b) { return b.first <= a.last; });
  if (overlap != runs_.end()) runs_ = Overlay(*this, repeats, describe).cut(runs_);

  std::vector<ResourceGroup> groups;
  for (const Run& run : runs_) {
    Resources& resources = resources_[run.children];
    if (!resources.group) {
      resources.group = groups.size();
      groups.push_back(
          {{}, std::move(resources.cores), std::move(resources.gpus), std::move(resources.extra)});
    }
    resources.ranks.append(run.first, run.last);
  }
  for (Resources& resources : resources_)
    if (resources.group) groups[*resources.group].ranks = resources.ranks.take();
  return groups;
}

}  // namespace resourced::rset

#include "core/rset/resource_set.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/rset/carried_keys.hpp"
#include "core/rset/document_reader.hpp"
#include "core/rset/group_table.hpp"
#include "core/rset/property_name.hpp"
#include "core/rset/range_list.hpp"
#include "core/rset/target_table.hpp"
#include "core/text/quote.hpp"

namespace resourced::rset {

using nlohmann::json;
using text::Hostlist;
using text::IdSet;

namespace {

void check_name(std::string_view name) {
  const std::string defect = property_name_defect(name);
  if (!defect.empty()) throw Error(EINVAL, fmt::format("property {}: {}", text::quoted(name), defect));
}

void check_time(std::string_view name, WallTime time) {
  const double seconds = to_number(time);
  if (!std::isfinite(seconds) || seconds < 0)
    throw Error(EINVAL, fmt::format("{}: {} is not a time", name, seconds));
}

bool equal_values(const auto& a, const auto& b) { return a == b || (a && b && *a == *b); }

bool equal_groups(const ResourceGroup& a, const ResourceGroup& b) {
  return a.ranks == b.ranks && a.cores == b.cores && a.gpus == b.gpus;
}

}  // namespace

ResourceSet::ResourceSet(std::vector<ResourceGroup> groups, Hostlist hosts) {
  GroupTable table;
  for (const ResourceGroup& group : groups) {
    if (group.ranks.empty()) throw Error(EINVAL, "a group has no ranks");
    if (group.cores.empty() && group.gpus.empty())
      throw Error(EINVAL, fmt::format("rank {} has neither cores nor gpus", group.ranks.first()));
    table.add(group.ranks, table.children(group.cores, group.gpus, group.extra), 0);
  }
  groups = table.finish(GroupTable::Repeats::refused, [](const GroupTable::Conflict& conflict) {
    return Error(EINVAL, fmt::format("rank {} {}", conflict.rank, conflict.text));
  });
  std::size_t ranks = 0;
  for (const ResourceGroup& group : groups) ranks += group.ranks.count();
  if (hosts.size() != ranks) throw Error(EINVAL, fmt::format("{} hosts for {} ranks", hosts.size(), ranks));
  if (ranks > max_targets) throw Error(EINVAL, fmt::format("more than {} ranks", max_targets));
  if (ranks > 0) table_ = std::make_shared<const TargetTable>(std::move(groups), std::move(hosts));
}

const TargetTable& ResourceSet::table() const noexcept {
  static const TargetTable none;
  return table_ ? *table_ : none;
}

bool ResourceSet::empty() const noexcept { return !table_; }
const IdSet& ResourceSet::ranks() const noexcept { return table().ranks(); }
const std::vector<ResourceGroup>& ResourceSet::groups() const noexcept { return table().groups(); }
const Hostlist& ResourceSet::nodelist() const noexcept { return table().hosts(); }

const std::string* ResourceSet::scheduling() const noexcept {
  return carried_ && carried_->scheduling ? &*carried_->scheduling : nullptr;
}

ResourceCounts ResourceSet::counts() const {
  ResourceCounts counts;
  for (const ResourceGroup& group : groups()) {
    counts.nodes += group.ranks.count();
    counts.cores += std::uint64_t{group.ranks.count()} * group.cores.count();
    counts.gpus += std::uint64_t{group.ranks.count()} * group.gpus.count();
  }
  return counts;
}

ResourceCounts ResourceSet::counts(const IdSet& ranks) const {
  const RangeList wanted(ranks);
  ResourceCounts counts;
  for (const ResourceGroup& group : groups()) {
    const std::uint64_t nodes = wanted.count_common(group.ranks);
    counts.nodes += nodes;
    counts.cores += nodes * group.cores.count();
    counts.gpus += nodes * group.gpus.count();
  }
  return counts;
}

Hostlist ResourceSet::hosts(const IdSet& ranks) const { return nodelist().select(positions_of(ranks)); }

bool ResourceSet::has_hosts(const IdSet& ranks, const Hostlist& hosts) const {
  std::size_t at = 0;
  bool same = true;
  positions_of(ranks).for_each_range([&](IdSet::Range range) {
    const std::size_t count = std::size_t{range.last} - range.first + 1;
    same = same && at + count <= hosts.size() && nodelist().matches(range.first, hosts, at, count);
    at += count;
  });
  return same && at == hosts.size();
}

std::string ResourceSet::host(IdSet::Id rank) const {
  const std::optional<std::size_t> position = position_of(rank);
  if (!position) throw Error(EINVAL, fmt::format("rank {} is not in the resource set", rank));
  return nodelist().at(*position);
}

std::optional<IdSet::Id> ResourceSet::rank_of(std::string_view host, std::uint32_t ordinal) const {
  return table().rank_of(host, ordinal);
}

std::uint32_t ResourceSet::ordinal_of(IdSet::Id rank) const { return table().ordinal_of(rank); }

HostSearch ResourceSet::ranks_of(const Hostlist& hosts, std::size_t most_unknown) const {
  return table().ranks_of(hosts, most_unknown);
}

bool ResourceSet::hosts_repeat() const { return table().hosts_repeat(); }

std::optional<std::size_t> ResourceSet::position_of(IdSet::Id rank) const { return table().position(rank); }

IdSet ResourceSet::positions_of(const IdSet& ranks) const { return table().positions(ranks); }

ResourceSet ResourceSet::copy_ranks(const IdSet& ranks) const {
  if (ranks.includes(this->ranks())) return *this;
  ResourceSet copy;
  copy.carried_ = carried_;
  copy.starttime_ = starttime_;
  copy.expiration_ = expiration_;

  // Ranks of a set with one group and no properties need no intersection.
  if (this->groups().size() == 1 && properties_.empty() && !ranks.empty() && this->ranks().includes(ranks)) {
    const ResourceGroup& all = this->groups().front();
    std::vector<ResourceGroup> part{{ranks, all.cores, all.gpus, all.extra}};
    copy.table_ = std::make_shared<const TargetTable>(std::move(part), hosts(ranks));
    return copy;
  }
  const RangeList wanted(ranks);
  std::vector<ResourceGroup> groups;
  for (const ResourceGroup& group : this->groups()) {
    IdSet kept = wanted.common(group.ranks);
    if (!kept.empty()) groups.push_back({std::move(kept), group.cores, group.gpus, group.extra});
  }
  if (groups.empty()) return copy;
  std::sort(groups.begin(), groups.end(),
            [](const ResourceGroup& a, const ResourceGroup& b) { return a.ranks.first() < b.ranks.first(); });
  copy.table_ = std::make_shared<const TargetTable>(std::move(groups), hosts(ranks));
  for (const auto& [name, holders] : properties_) {
    IdSet kept = wanted.common(holders);
    if (!kept.empty()) copy.properties_.emplace(name, std::move(kept));
  }
  return copy;
}

void ResourceSet::remove_ranks(const IdSet& ranks) { *this = copy_ranks(this->ranks() - ranks); }

ResourceSet ResourceSet::without_local_properties() const {
  ResourceSet copy = *this;
  std::erase_if(copy.properties_, [](const auto& property) { return is_local_property(property.first); });
  return copy;
}

void ResourceSet::check_ranks(std::string_view name, const IdSet& ranks) const {
  if (this->ranks().includes(ranks)) return;
  throw Error(EINVAL,
              fmt::format("{}: rank {} is not in the resource set", name, (ranks - this->ranks()).first()));
}

void ResourceSet::add_property(std::string_view name, const IdSet& ranks) {
  check_name(name);
  check_ranks(fmt::format("property {}", name), ranks);
  if (!ranks.empty()) properties_[std::string(name)] |= ranks;
}

void ResourceSet::remove_property(std::string_view name, const IdSet& ranks) {
  check_name(name);
  check_ranks(fmt::format("property {}", name), ranks);
  const auto property = properties_.find(name);
  if (property == properties_.end()) return;
  property->second -= ranks;
  if (property->second.empty()) properties_.erase(property);
}

void ResourceSet::set_starttime(WallTime time) {
  check_time("starttime", time);
  if (expiration_ != WallTime{} && time >= expiration_)
    throw Error(EINVAL, fmt::format("starttime {} is not before expiration {}", to_number(time),
                                    to_number(expiration_)));
  starttime_ = time;
}

void ResourceSet::set_expiration(WallTime time) {
  check_time("expiration", time);
  if (time != WallTime{} && time <= starttime_)
    throw Error(EINVAL, fmt::format("expiration {} is not after starttime {}", to_number(time),
                                    to_number(starttime_)));
  expiration_ = time;
}

void ResourceSet::set_nslots(std::optional<std::uint64_t> nslots) {
  if (nslots && *nslots == 0) throw Error(EINVAL, "nslots is less than 1");
  nslots_ = nslots;
}

void ResourceSet::set_scheduling(std::string_view text) {
  std::string scheduling = read_scheduling(text, "");
  CarriedKeys carried = carried_ ? *carried_ : CarriedKeys{};
  carried.scheduling = std::move(scheduling);
  carried_ = std::make_shared<const CarriedKeys>(std::move(carried));
}

void ResourceSet::inherit(const ResourceSet& from) {
  if (starttime_ == WallTime{} && expiration_ == WallTime{}) {
    starttime_ = from.starttime_;
    expiration_ = from.expiration_;
  }
  if (!from.carried_ || from.carried_ == carried_) return;
  if (!carried_) {
    carried_ = from.carried_;
    return;
  }
  CarriedKeys both = *carried_;
  if (!both.scheduling) both.scheduling = from.carried_->scheduling;
  if (!both.attributes) both.attributes = from.carried_->attributes;
  both.document.insert(from.carried_->document.begin(), from.carried_->document.end());
  both.execution.insert(from.carried_->execution.begin(), from.carried_->execution.end());
  carried_ = std::make_shared<const CarriedKeys>(std::move(both));
}

std::optional<std::string> ResourceSet::unlike_execution_key(const ResourceSet& other) const {
  if (!carried_ || carried_ == other.carried_) return std::nullopt;
  for (const auto& [key, value] : carried_->execution) {
    if (!other.carried_) return key;
    const auto same = other.carried_->execution.find(key);
    if (same == other.carried_->execution.end() || same->second != value) return key;
  }
  return std::nullopt;
}

bool operator==(const CarriedKeys& a, const CarriedKeys& b) {
  return same_scheduling(a.scheduling ? &*a.scheduling : nullptr, b.scheduling ? &*b.scheduling : nullptr) &&
         a.attributes == b.attributes && a.document == b.document && a.execution == b.execution;
}

bool same_scheduling(const std::string* a, const std::string* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return *a == *b || json_text::value_of(*a) == json_text::value_of(*b);
}

bool operator==(const ResourceSet& a, const ResourceSet& b) {
  const bool same_extra = std::equal(
      a.groups().begin(), a.groups().end(), b.groups().begin(), b.groups().end(),
      [](const ResourceGroup& x, const ResourceGroup& y) { return equal_values(x.extra, y.extra); });
  return same_extra && same_resources(a, b) && a.properties_ == b.properties_ &&
         a.starttime_ == b.starttime_ && a.expiration_ == b.expiration_ && a.nslots_ == b.nslots_ &&
         equal_values(a.carried_, b.carried_);
}

bool same_resources(const ResourceSet& a, const ResourceSet& b) {
  return std::equal(a.groups().begin(), a.groups().end(), b.groups().begin(), b.groups().end(),
                    equal_groups) &&
         a.nodelist() == b.nodelist();
}

}  // namespace resourced::rset

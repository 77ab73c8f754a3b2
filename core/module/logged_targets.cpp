#include "core/module/logged_targets.hpp"

#include <iterator>

namespace resourced::module {

using text::IdSet;

std::vector<std::string> LoggedTargets::restart(const IdSet& ranks, const text::Hostlist& hosts) {
  for (const TargetName& name : left_) {
    const auto [gone, first] = gone_.try_emplace(name.host);
    auto& [ordinals, remaining] = gone->second;
    if (first && !present_.empty()) remaining = count_of(name.host);
    if (ordinals.insert(name.ordinal).second && remaining && *remaining > 0) --*remaining;
  }
  left_.clear();
  present_ = {};
  if (!hosts.empty() && hosts.size() == ranks.count())
    present_ = rset::ResourceSet({{ranks, IdSet{0}, {}}}, hosts);
  std::vector<std::string> back;
  std::erase_if(gone_, [&](const auto& entry) {
    const auto& [host, gone] = entry;
    if (!gone.remaining || !present_.rank_of(host, *gone.remaining)) return false;
    back.push_back(host);
    return true;
  });
  return back;
}

void LoggedTargets::take_back(const std::string& host) {
  gone_.erase(host);
  const auto first = left_.lower_bound(TargetName{host, 0});
  auto last = first;
  while (last != left_.end() && last->host == host) ++last;
  left_.erase(first, last);
}

std::uint32_t LoggedTargets::count_of(const std::string& host) const {
  std::uint32_t count = 0;
  while (present_.rank_of(host, count)) ++count;
  return count;
}

std::uint32_t LoggedTargets::ordinal_of(const std::string& host, std::uint32_t nth) const {
  const auto gone = gone_.find(host);
  if (gone == gone_.end()) return nth;
  // The ordinals are in ascending order: each target that left raises the ordinal by one.
  for (const std::uint32_t ordinal : gone->second.ordinals) {
    if (ordinal > nth) break;
    ++nth;
  }
  return nth;
}

std::optional<TargetName> LoggedTargets::name_of(IdSet::Id rank) const {
  if (!present_.ranks().contains(rank)) return std::nullopt;
  std::string host = present_.host(rank);
  const std::uint32_t ordinal = ordinal_of(host, present_.ordinal_of(rank));
  return TargetName{std::move(host), ordinal};
}

std::optional<IdSet::Id> LoggedTargets::rank_of(const TargetName& name) const {
  std::uint32_t nth = name.ordinal;
  if (const auto gone = gone_.find(name.host); gone != gone_.end()) {
    const auto& ordinals = gone->second.ordinals;
    if (ordinals.contains(nth)) return std::nullopt;
    nth -= static_cast<std::uint32_t>(std::distance(ordinals.begin(), ordinals.lower_bound(nth)));
  }
  return present_.rank_of(name.host, nth);
}

}  // namespace resourced::module

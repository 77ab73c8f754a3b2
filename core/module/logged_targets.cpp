#include "core/module/logged_targets.hpp"

#include <iterator>

namespace resourced {

void LoggedTargets::restart(const IdSet& ranks, const Hostlist& hosts) {
  for (const TargetName& name : left_) gone_[name.host].insert(name.ordinal);
  left_.clear();
  present_ = {};
  if (!hosts.empty() && hosts.size() == ranks.count()) present_ = ResourceSet({{ranks, IdSet{0}, {}}}, hosts);
}

std::uint32_t LoggedTargets::ordinal_of(const std::string& host, std::uint32_t nth) const {
  const auto gone = gone_.find(host);
  if (gone == gone_.end()) return nth;
  // In ascending order: each that left pushes the ordinal up by one.
  for (const std::uint32_t ordinal : gone->second) {
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
    const auto& ordinals = gone->second;
    if (ordinals.contains(nth)) return std::nullopt;
    nth -= static_cast<std::uint32_t>(std::distance(ordinals.begin(), ordinals.lower_bound(nth)));
  }
  return present_.rank_of(name.host, nth);
}

}  // namespace resourced

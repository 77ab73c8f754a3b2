// Targets of a filter for the store alone, which knows them by their hosts.
#pragma once

#include <memory>
#include <string_view>

#include "daemon/store/records.hpp"

namespace resourced::daemon::store {

/// `hosts` and `strangers` are hostlists.
inline std::shared_ptr<const EventTargets> targets_of(std::string_view hosts,
                                                      std::string_view strangers = {}) {
  const Hostlist list = Hostlist::parse(hosts);
  ResourceSet inventory;
  if (!list.empty()) {
    const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(list.size() - 1));
    inventory = ResourceSet({{ranks, {0}, {}}}, list);
  }
  const IdSet ranks = inventory.ranks();
  return std::make_shared<const EventTargets>(EventTargets{
      std::make_shared<const ResourceSet>(std::move(inventory)), ranks, Hostlist::parse(strangers)});
}

}  // namespace resourced::daemon::store

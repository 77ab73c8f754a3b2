#include "daemon/journal_source.hpp"

#include <utility>

#include "core/rset/targets.hpp"

namespace resourced::daemon {

EventFilter filter_targets(std::string_view text, const ResourceSet& inventory) {
  EventFilter filter;
  HostSearch search = parse_known_targets(text, inventory);
  filter.ranks = std::move(search.ranks);
  filter.strangers = std::move(search.unknown);
  std::vector<std::string>& hosts = filter.hosts.emplace();
  hosts.reserve(filter.ranks.count() + filter.strangers.size());
  inventory.hosts(filter.ranks).for_each([&](std::string_view host) { hosts.emplace_back(host); });
  hosts.insert(hosts.end(), filter.strangers.begin(), filter.strangers.end());
  return filter;
}

}  // namespace resourced::daemon

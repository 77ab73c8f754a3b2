#include "daemon/journal_source.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/targets.hpp"

namespace resourced::daemon {

EventFilter filter_targets(std::string_view text, const ResourceSet& inventory) {
  EventFilter filter;
  std::vector<std::string>& hosts = filter.hosts.emplace();
  const std::optional<Hostlist> named = hosts_of_targets(text);
  if (!named) {
    filter.ranks = parse_targets(text, inventory);
    inventory.hosts(filter.ranks).for_each([&](std::string_view host) { hosts.emplace_back(host); });
    return filter;
  }
  filter.ranks = known_ranks_of_hosts(*named, inventory);
  inventory.hosts(filter.ranks).for_each([&](std::string_view host) { hosts.emplace_back(host); });
  named->for_each([&](std::string_view host) {
    if (inventory.rank_of(host)) return;
    if (filter.strangers.size() == max_strangers)
      throw Error(EINVAL, fmt::format("more than {} hosts are unknown", max_strangers));
    filter.strangers.emplace_back(host);
  });
  hosts.insert(hosts.end(), filter.strangers.begin(), filter.strangers.end());
  return filter;
}

}  // namespace resourced::daemon

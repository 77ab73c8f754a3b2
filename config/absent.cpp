#include "config/absent.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/targets.hpp"

namespace resourced::config {

void check_host_count(const Hostlist& hosts) {
  if (hosts.size() > max_named_hosts)
    throw Error(EINVAL, fmt::format("names {} hosts, more than {}", hosts.size(), max_named_hosts));
}

IdSet present_ranks(const Hostlist& hosts, const ResourceSet& resources, const Absent& absent) {
  check_host_count(hosts);
  if (absent.any_host) return known_ranks_of_hosts(hosts, resources);
  if (absent.hosts.empty()) return ranks_of_hosts(hosts, resources);
  Hostlist present;
  hosts.for_each([&](std::string_view host) {
    if (resources.rank_of(host) || !absent.hosts.contains(std::string(host))) present.append(host);
  });
  return ranks_of_hosts(present, resources);
}

IdSet parse_present_targets(std::string_view text, const ResourceSet& resources, const Absent& absent) {
  if (const auto hosts = hosts_of_targets(text)) return present_ranks(*hosts, resources, absent);
  const IdSet ranks = IdSet::parse(text);
  if (absent.any_rank) return ranks & resources.ranks();
  const IdSet rest = ranks - absent.ranks;
  if (!rest.empty() || ranks.empty()) (void)parse_targets(rest.encode(), resources);
  return ranks & resources.ranks();
}

}  // namespace resourced::config

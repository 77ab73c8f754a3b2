#include "core/rset/targets.hpp"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/id_collector.hpp"
#include "core/text/quote.hpp"

namespace resourced {

namespace {

/// A host name as it is where it is short and printable, as host names are.
std::string shown(std::string_view host) {
  return host.size() <= max_quoted ? std::string(host) : quoted(host);
}

/// The ranks of hosts, which several ranks may share, at the cost of a look at each rank of the set.
IdSet ranks_among(const Hostlist& hosts, const ResourceSet& set) {
  const HostIndex wanted(hosts);
  std::vector<bool> chosen;
  chosen.reserve(set.nodelist().size());
  set.nodelist().for_each([&](std::string_view host) { chosen.push_back(wanted.find(host).has_value()); });
  IdCollector ranks;
  std::size_t position = 0;
  set.ranks().for_each([&](IdSet::Id rank) {
    if (chosen[position++]) ranks.add(rank);
  });
  return ranks.take();
}

[[noreturn]] void refuse_host(std::string_view host) {
  throw Error(EINVAL, fmt::format("unknown host: {}", shown(host)));
}

/// Ends at the first host that is not in the set. Of those that are, ranges of one prefix and suffix have
/// each once, and a name has no more prefixes and suffixes than digits.
void refuse_unknown_hosts(const Hostlist& hosts, const ResourceSet& set) {
  Hostlist distinct = hosts;
  distinct.drop_repeated_ranges();
  distinct.for_each([&](std::string_view host) {
    if (!set.rank_of(host)) refuse_host(host);
  });
}

IdSet ranks_of(const Hostlist& hosts, const ResourceSet& set, bool refuse_unknown) {
  if (hosts == set.nodelist()) return set.ranks();
  // A short text can name billions of hosts, and the same host as often: then the set is gone through
  // instead.
  if (hosts.size() > set.nodelist().size()) {
    if (refuse_unknown) refuse_unknown_hosts(hosts, set);
    return ranks_among(hosts, set);
  }
  IdCollector ranks;
  hosts.for_each([&](std::string_view host) {
    const std::optional<IdSet::Id> rank = set.rank_of(host);
    if (rank) {
      ranks.add(*rank);
    } else if (refuse_unknown) {
      refuse_host(host);
    }
  });
  return set.hosts_repeat() ? ranks_among(hosts, set) : ranks.take();
}

std::optional<IdSet> as_idset(std::string_view text) {
  try {
    return IdSet::parse(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<Hostlist> hosts_of_targets(std::string_view text) {
  if (as_idset(text)) return std::nullopt;
  try {
    return Hostlist::parse(text);
  } catch (const Error& error) {
    throw Error(EINVAL, error.what());
  }
}

IdSet parse_targets(std::string_view text, const ResourceSet& set) {
  std::optional<IdSet> ranks = as_idset(text);
  if (!ranks) return ranks_of_hosts(*hosts_of_targets(text), set);
  if (ranks->empty()) throw Error(EINVAL, "idset is empty");
  if (!set.ranks().includes(*ranks)) throw Error(EINVAL, "idset is out of range");
  return *std::move(ranks);
}

IdSet ranks_of_hosts(const Hostlist& hosts, const ResourceSet& set) { return ranks_of(hosts, set, true); }

IdSet known_ranks_of_hosts(const Hostlist& hosts, const ResourceSet& set) {
  return ranks_of(hosts, set, false);
}

}  // namespace resourced

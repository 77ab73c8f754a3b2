#include "core/rset/targets.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/id_collector.hpp"
#include "core/text/quote.hpp"

namespace resourced::rset {

using text::Hostlist;
using text::IdSet;

namespace {

/// Returns a host name for an error text: without quotes if it is short.
std::string shown(std::string_view host) {
  return host.size() <= text::max_quoted ? std::string(host) : text::quoted(host);
}

/// Returns the ranks of these hosts, each of which may have several. Visits every rank of the set.
IdSet ranks_among(const Hostlist& hosts, const ResourceSet& set) {
  const text::HostIndex wanted(hosts);
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

/// Refuses a text with many more entries than a list without repeats can have, before it is parsed.
void check_entries(std::string_view text, const ResourceSet& set) {
  constexpr std::size_t always = 16384;
  const std::size_t most = std::max(always, set.ranks().count()) + max_unknown_hosts;
  const auto commas = static_cast<std::size_t>(std::count(text.begin(), text.end(), ','));
  if (commas >= most)
    throw Error(EINVAL, fmt::format("{} ranks or hosts are named, more than {}", commas + 1, most));
}

std::optional<IdSet> as_idset(std::string_view text) {
  try {
    return IdSet::parse(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Hostlist parse_hosts(std::string_view text) {
  try {
    return Hostlist::parse(text);
  } catch (const Error& error) {
    throw Error(EINVAL, error.what());
  }
}

IdSet check_ranks(IdSet ranks, const ResourceSet& set) {
  if (ranks.empty()) throw Error(EINVAL, "idset is empty");
  if (!set.ranks().includes(ranks)) throw Error(EINVAL, "idset is out of range");
  return ranks;
}

}  // namespace

IdSet parse_targets(std::string_view text, const ResourceSet& set) {
  check_entries(text, set);
  if (std::optional<IdSet> ranks = as_idset(text)) return check_ranks(*std::move(ranks), set);
  return ranks_of_hosts(parse_hosts(text), set);
}

HostSearch parse_known_targets(std::string_view text, const ResourceSet& set) {
  return parse_known_targets(text, set, set);
}

HostSearch parse_known_targets(std::string_view text, const ResourceSet& of_ranks,
                               const ResourceSet& of_hosts) {
  check_entries(text, of_ranks);
  if (std::optional<IdSet> ranks = as_idset(text)) return {check_ranks(*std::move(ranks), of_ranks), {}};
  HostSearch search = of_hosts.ranks_of(parse_hosts(text), max_unknown_hosts);
  if (search.unknown.size() > max_unknown_hosts)
    throw Error(EINVAL, fmt::format("more than {} hosts are unknown", max_unknown_hosts));
  return search;
}

std::optional<Hostlist> hosts_of_targets(std::string_view text) {
  if (as_idset(text)) return std::nullopt;
  return parse_hosts(text);
}

IdSet ranks_of_hosts(const Hostlist& hosts, const ResourceSet& set) {
  HostSearch search = set.ranks_of(hosts, 0);
  if (!search.unknown.empty())
    throw Error(EINVAL, fmt::format("unknown host: {}", shown(search.unknown.front())));
  return std::move(search.ranks);
}

IdSet known_ranks_of_hosts(const Hostlist& hosts, const ResourceSet& set) {
  // A short text can name billions of hosts: in that case visit the ranks of the set instead.
  if (set.hosts_repeat() || hosts.size() > set.nodelist().size()) return ranks_among(hosts, set);
  IdCollector ranks;
  hosts.for_each([&](std::string_view host) {
    if (const std::optional<IdSet::Id> rank = set.rank_of(host)) ranks.add(*rank);
  });
  return ranks.take();
}

}  // namespace resourced::rset

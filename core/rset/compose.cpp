#include "core/rset/compose.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/operations.hpp"

namespace resourced::rset {

using text::Hostlist;
using text::IdSet;

namespace {

// Maximum number of ranks on the local host, whose name is repeated in the hostlist for each rank.
constexpr std::size_t max_local_ranks = std::size_t{1} << 20;

Hostlist repeated(const std::string& host, std::size_t count) {
  if (count > max_local_ranks) throw Error(EINVAL, fmt::format("{} ranks need a list of hosts", count));
  Hostlist hosts;
  for (std::size_t i = 0; i < count; ++i) hosts.append(host);
  return hosts;
}

IdSet ranks_of(const Composition& parts) {
  if (parts.ranks) return *parts.ranks;
  if (!parts.hosts || parts.hosts->empty()) return IdSet{0};
  return IdSet::range(0, static_cast<IdSet::Id>(parts.hosts->size() - 1));
}

}  // namespace

ResourceSet compose(const Composition& parts, const std::string& local_host) {
  IdSet ranks = ranks_of(parts);
  if (ranks.empty()) throw Error(EINVAL, "ranks: idset is empty");
  Hostlist hosts = parts.hosts ? *parts.hosts : repeated(local_host, ranks.count());
  ResourceSet set({{std::move(ranks), parts.cores.value_or(IdSet{0}), parts.gpus}}, std::move(hosts));
  for (const std::string& property : parts.properties) set_property(set, property);
  return set;
}

}  // namespace resourced::rset

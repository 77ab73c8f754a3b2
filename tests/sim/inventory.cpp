#include "inventory.hpp"

#include <utility>

namespace resourced::sim {

using rset::ResourceSet;
using text::IdSet;

std::shared_ptr<const ResourceSet> resources_of(const std::vector<std::string>& hosts) {
  const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(hosts.size() - 1));
  text::Hostlist nodelist;
  for (const std::string& host : hosts) nodelist.append(text::Hostlist::parse(host));
  return std::make_shared<const ResourceSet>(
      std::vector<rset::ResourceGroup>{{ranks, IdSet::range(0, 3), IdSet{}}}, std::move(nodelist));
}

IdSet idset_of(const Reference::Ranks& ranks) {
  IdSet ids;
  for (const unsigned rank : ranks) ids.insert(rank);
  return ids;
}

std::vector<module::PartitionRule> left_of(std::size_t count) {
  return {{"left", IdSet::range(0, static_cast<IdSet::Id>(count / 2 - 1)), {}}};
}

}  // namespace resourced::sim

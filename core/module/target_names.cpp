#include "core/module/target_names.hpp"

#include <algorithm>

namespace resourced::module {

void TargetNames::append(const TargetName& name) {
  if (name.ordinal != 0 || !ordinals.empty()) {
    ordinals.resize(hosts.size());
    ordinals.push_back(name.ordinal);
  }
  hosts.append(name.host);
}

TargetNames names_of(const text::IdSet& ranks, const rset::ResourceSet& configured) {
  TargetNames names{configured.hosts(ranks), {}};
  if (!configured.hosts_repeat()) return names;
  (ranks & configured.ranks()).for_each([&](text::IdSet::Id rank) {
    names.ordinals.push_back(configured.ordinal_of(rank));
  });
  return names;
}

}  // namespace resourced::module

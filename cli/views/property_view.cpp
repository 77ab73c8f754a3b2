// Rows of properties, see views.hpp.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/views/views.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::views {

std::vector<std::pair<std::string, text::IdSet>> property_sets(const rset::ResourceSet& set) {
  using text::IdSet;
  std::map<IdSet::Id, std::string> names_of_ranks;
  set.ranks().for_each([&](IdSet::Id rank) { names_of_ranks.emplace(rank, std::string()); });
  for (const auto& [name, ranks] : set.properties()) {
    (ranks & set.ranks()).for_each([&, &name = name](IdSet::Id rank) {
      std::string& names = names_of_ranks[rank];
      names += (names.empty() ? "" : ",") + name;
    });
  }
  std::map<std::string, IdSet> found;
  for (const auto& [rank, names] : names_of_ranks) found[names].insert(rank);
  std::vector<std::pair<std::string, IdSet>> sets(found.begin(), found.end());
  std::ranges::sort(sets, {}, [](const auto& one) { return one.second.first(); });
  return sets;
}

Listing property_columns() {
  Listing listing;
  listing.columns = {{"property", "PROPERTY"},
                     {"nnodes", "NNODES", true},
                     {"ranks", "RANKS", false, true},
                     {"nodelist", "NODELIST"}};
  return listing;
}

Listing property_view(const nlohmann::json& payload, const ViewFilter& filter) {
  const auto status = proto::topics::parse_status(payload);
  const auto targets = wanted_targets(filter, status.inventory);
  Listing listing = property_columns();
  for (const auto& [name, all] : status.inventory.properties()) {
    const auto ranks = all & targets;
    if (ranks.empty()) continue;
    listing.rows.push_back({name, ranks.count(), ranks.encode(), status.inventory.hosts(ranks).encode()});
  }
  return listing;
}

}  // namespace resourced::cli::views

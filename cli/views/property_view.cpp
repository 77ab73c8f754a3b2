// Rows of properties, see views.hpp.
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

NamedSets sets_by_names(const text::IdSet& ranks, const NamedSets& named) {
  using text::IdSet;
  std::map<IdSet::Id, std::string> names_of_ranks;
  ranks.for_each([&](IdSet::Id rank) { names_of_ranks.emplace(rank, std::string()); });
  for (const auto& one : named) {
    (one.second & ranks).for_each([&](IdSet::Id rank) {
      std::string& names = names_of_ranks[rank];
      names += (names.empty() ? "" : ",") + one.first;
    });
  }
  std::map<std::string, IdSet> found;
  for (const auto& [rank, names] : names_of_ranks) found[names].insert(rank);
  return {found.begin(), found.end()};
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

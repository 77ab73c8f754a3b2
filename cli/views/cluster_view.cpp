#include "cli/views/cluster_view.hpp"

#include <algorithm>

namespace resourced::cli::views {

Listing cluster_columns() {
  Listing listing;
  listing.columns = {{"name", "NAME"},
                     {"role", "ROLE"},
                     {"epoch", "EPOCH", true},
                     {"events", "EVENTS", true},
                     {"behind", "BEHIND", true},
                     {"version", "VERSION"},
                     {"uri", "URI"}};
  return listing;
}

Listing cluster_view(const proto::topics::Cluster& cluster) {
  Listing listing = cluster_columns();
  for (const proto::topics::ClusterMember& member : cluster.members) {
    const bool leads = member.name == cluster.name;
    const std::uint64_t events = leads ? cluster.head : std::min(member.applied, cluster.head);
    listing.rows.push_back({member.name, leads ? "leader" : "standby",
                            leads ? Cell(cluster.epoch) : Cell(nullptr, "-"), events, cluster.head - events,
                            member.version.empty() ? Cell(nullptr, "-") : Cell(member.version), member.uri});
  }
  return listing;
}

}  // namespace resourced::cli::views

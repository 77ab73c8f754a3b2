#include "cli/views/cluster_view.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace resourced::cli::views {

Listing cluster_columns() {
  Listing listing;
  listing.columns = {{"name", "NAME"},
                     {"role", "ROLE"},
                     {"epoch", "EPOCH", true},
                     {"events", "EVENTS", true},
                     {"behind", "BEHIND", true},
                     {"version", "VERSION"},
                     {"uri", "URI"},
                     {"differs", "DIFFERS"}};
  return listing;
}

namespace {

Cell differs_cell(const std::optional<std::vector<std::string>>& groups) {
  if (!groups) return {nullptr, "unknown"};
  return {*groups, groups->empty() ? "-" : fmt::format("{}", fmt::join(*groups, ","))};
}

}  // namespace

Listing cluster_view(const proto::topics::Cluster& cluster) {
  Listing listing = cluster_columns();
  for (const proto::topics::ClusterMember& member : cluster.members) {
    const bool leads = member.name == cluster.name;
    const std::uint64_t events = leads ? cluster.head : std::min(member.applied, cluster.head);
    listing.rows.push_back({member.name, leads ? "leader" : "standby",
                            leads ? Cell(cluster.epoch) : Cell(nullptr, "-"), events, cluster.head - events,
                            member.version.empty() ? Cell(nullptr, "-") : Cell(member.version), member.uri,
                            differs_cell(member.differs)});
  }
  return listing;
}

}  // namespace resourced::cli::views

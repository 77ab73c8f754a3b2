// The table of the members of a cluster.
#pragma once

#include "cli/views/listing.hpp"
#include "proto/topics/cluster.hpp"

namespace resourced::cli::views {

[[nodiscard]] Listing cluster_columns();
/// Returns a row for each member, in the order of their names. The leader has all events of the log; a
/// standby reports its position once a second, so one that is caught up may seem to lag by the changes of a
/// second. DIFFERS has the groups of settings in which its files differ from the leader's.
[[nodiscard]] Listing cluster_view(const proto::topics::Cluster& cluster);

}  // namespace resourced::cli::views

// Rows of the scheduler's view, see views.hpp.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/views/listing.hpp"
#include "cli/views/state_names.hpp"
#include "cli/views/views.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/resource_set.hpp"
#include "core/rset/short_form.hpp"
#include "core/text/idset.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::views {

using nlohmann::json;
using rset::ResourceSet;
using text::IdSet;

namespace {

/// Returns the sets in the order of `sched_states`.
std::array<ResourceSet, 4> sched_sets(const proto::topics::SchedStatus& status,
                                      const std::optional<IdSet>& targets) {
  auto [all, allocated, down, reported] = status;
  if (targets) {
    all = all.copy_ranks(*targets);
    allocated = allocated.copy_ranks(*targets);
    down = down.copy_ranks(*targets);
  }
  const auto rest = diff(diff(all, allocated), down);
  return {rest.copy_ranks(rest.ranks() & reported), rest.copy_ranks(rest.ranks() - reported),
          std::move(allocated), std::move(down)};
}

bool wants_all_sched_states(const SchedFilter& filter) {
  return filter.states.empty() ||
         std::all_of(sched_states.begin(), sched_states.end(),
                     [&](std::string_view state) { return wants(filter.states, state); });
}

/// The targets of one row, and its values of the fields that divide a state into rows.
struct Share {
  IdSet ranks;
  std::string properties;
  std::string propertiesx;
  std::string queue;
};

/// Divides each share by the names that its ranks have. The shares keep these as `value`.
void divide(std::vector<Share>& shares, std::string Share::*value, const NamedSets& named) {
  std::vector<Share> divided;
  for (const Share& share : shares) {
    for (auto& [names, ranks] : sets_by_names(share.ranks, named)) {
      Share& piece = divided.emplace_back(share);
      piece.ranks = std::move(ranks);
      piece.*value = std::move(names);
    }
  }
  shares = std::move(divided);
}

/// Returns the rows of a set: one, unless the fields divide it. Without the field `properties` that is the
/// properties of all together.
std::vector<Share> shares_of(const ResourceSet& set, const std::set<std::string, std::less<>>& fields,
                             const QueueFacts& queues) {
  Share whole{set.ranks(), "", "", ""};
  NamedSets properties;
  NamedSets others;
  for (const auto& [name, ranks] : set.properties()) {
    whole.properties += (whole.properties.empty() ? "" : ",") + name;
    properties.emplace_back(name, ranks);
    // A queue with hosts of its own is the property `+NAME`.
    if (!queues.names.contains(name.substr(name.starts_with('+') ? 1 : 0))) others.emplace_back(name, ranks);
  }
  std::vector<Share> shares{std::move(whole)};
  if (set.empty()) return shares;
  if (fields.contains("properties")) divide(shares, &Share::properties, properties);
  if (fields.contains("propertiesx")) divide(shares, &Share::propertiesx, others);
  if (fields.contains("queue")) divide(shares, &Share::queue, queues.shown);
  std::ranges::sort(shares, {}, [](const Share& share) { return share.ranks.first(); });
  return shares;
}

}  // namespace

Listing sched_columns() {
  Listing listing;
  listing.columns = {{"state", "STATE", true},
                     {"nnodes", "NNODES", true},
                     {"ncores", "NCORES", true},
                     {"ngpus", "NGPUS", true},
                     {"ranks", "RANKS", false, true},
                     {"properties", "PROPERTIES", false, true},
                     {"nodelist", "NODELIST"},
                     {"rlist", "LIST", false, true, true},
                     {"propertiesx", "PROPERTIES", false, true, true},
                     {"queue", "QUEUE", false, true, true}};
  return listing;
}

Listing sched_view(const json& sched_status, const SchedFilter& filter,
                   const std::set<std::string, std::less<>>& fields, const QueueFacts& queues) {
  Listing listing = sched_columns();
  const auto sets = sched_sets(proto::topics::parse_sched_status(sched_status), filter.targets);
  const bool everything = wants_all_sched_states(filter);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const bool is_needless = sched_states[i] == "up" && sets[i].empty();
    if (everything ? is_needless : !wants(filter.states, sched_states[i])) continue;
    for (const Share& share : shares_of(sets[i], fields, queues)) {
      const ResourceSet set = sets[i].copy_ranks(share.ranks);
      const auto counts = set.counts();
      listing.rows.push_back({std::string(sched_states[i]), counts.nodes, counts.cores, counts.gpus,
                              share.ranks.encode(), share.properties, set.nodelist().encode(),
                              rset::short_form(set), share.propertiesx, share.queue});
    }
  }
  if (filter.skip_empty) leave_out_empty(listing);
  return listing;
}

ResourceSet sched_resources(const json& sched_status, const SchedFilter& filter) {
  const bool everything = wants_all_sched_states(filter);
  const auto status = proto::topics::parse_sched_status(sched_status);
  auto all = filter.targets ? status.all.copy_ranks(*filter.targets) : status.all;
  if (everything) return all;
  // An allocated resource may also be down, so the sets overlap. Subtract the other states from all, so that
  // each resource is counted once.
  auto rest = all;
  const auto sets = sched_sets(status, filter.targets);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (wants(filter.states, sched_states[i])) rest = diff(rest, sets[i]);
  }
  return diff(all, rest);
}

std::string info_line(const rset::ResourceCounts& counts) {
  return fmt::format("{} Nodes, {} Cores, {} GPUs", counts.nodes, counts.cores, counts.gpus);
}

}  // namespace resourced::cli::views

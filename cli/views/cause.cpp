// Causes of drains in listings, see views.hpp.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/views/views.hpp"
#include "core/module/drain_table.hpp"
#include "proto/actor_json.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::views {

using rset::ResourceSet;
using text::IdSet;

void add_cause_columns(Listing& listing) {
  listing.columns.push_back({"user", "USER", false, true});
  listing.columns.push_back({"by", "BY", false, true});
  listing.columns.push_back({"ticket", "TICKET", false, true});
}

void add_cause_cells(std::vector<Cell>& row, const module::Drain& drain, const UserName& user_name) {
  const Cell none(nullptr, "-");
  if (!drain.by) {
    row.insert(row.end(), 2, none);
  } else {
    const module::Actor& by = *drain.by;
    const auto* user = std::get_if<module::ByUser>(&by);
    std::optional<std::string> name;
    if (user != nullptr && user_name) name = user_name(user->id);
    if (!name) name = proto::actor_name(by);
    row.emplace_back(*std::move(name));
    row.emplace_back(proto::actor_to_json(by), proto::encode_actor(by));
  }
  row.push_back(drain.ticket ? Cell(*drain.ticket) : none);
}

IdSet kept_by_update(const module::DrainGroup& drain, const ResourceSet& inventory) {
  if (drain.is_for_silence()) return {};
  IdSet kept;
  drain.ranks.for_each([&](IdSet::Id rank) {
    if (!drain.is_for_health_of(inventory.host(rank))) kept.insert(rank);
  });
  return kept;
}

std::vector<std::pair<Cause, IdSet>> sets_by_cause(const proto::topics::Status& status, const IdSet& targets,
                                                   const ViewFilter& filter) {
  if (!filter.by_reason && !filter.by_time) return {{Cause{}, targets}};
  std::map<Cause, IdSet> sets;
  for (const auto& drain : status.drains) {
    const IdSet ranks = drain.ranks & targets;
    if (ranks.empty()) continue;
    Cause cause;
    if (filter.by_reason) cause.reason = drain.reason.value_or("");
    if (filter.by_time) cause.time = drain.timestamp;
    sets[cause] |= ranks;
  }
  std::vector<std::pair<Cause, IdSet>> sorted(sets.begin(), sets.end());
  std::ranges::sort(sorted, {}, [](const auto& set) { return set.second.first(); });
  return sorted;
}

}  // namespace resourced::cli::views

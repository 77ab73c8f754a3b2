#include "cli/views/schedule.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::views {

Listing schedule_columns() {
  Listing listing;
  listing.columns = {{"from", "FROM"},
                     {"until", "UNTIL"},
                     {"state", "STATE"},
                     {"ranks", "RANK"},
                     {"nnodes", "NNODES", true, true},
                     {"reason", "REASON"},
                     {"nodelist", "NODELIST"}};
  add_cause_columns(listing);
  return listing;
}

Listing schedule_view(const nlohmann::json& payload, const ViewFilter& filter, const UserName& user_name) {
  const auto status = proto::topics::parse_status(payload);
  struct Row {
    module::DrainGroup drain;
    const char* state;
  };
  std::vector<Row> rows;
  const text::IdSet targets = wanted_targets(filter, status.inventory);
  const auto add = [&](const module::DrainGroup& drain, const char* state) {
    Row row{drain, state};
    row.drain.ranks &= targets;
    if (!row.drain.ranks.empty()) rows.push_back(std::move(row));
  };
  for (const auto& drain : status.scheduled) add(drain, "scheduled");
  for (const auto& drain : status.drains) {
    if (drain.until) add(drain, "drained");
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(a.drain.timestamp, a.drain.ranks.first()) <
           std::pair(b.drain.timestamp, b.drain.ranks.first());
  });
  Listing listing = schedule_columns();
  for (const auto& [drain, state] : rows) {
    const Cell until =
        drain.until ? Cell(to_number(*drain.until), format_time(*drain.until)) : Cell(nullptr, "-");
    std::vector<Cell> row{Cell(to_number(drain.timestamp), format_time(drain.timestamp)),
                          until,
                          state,
                          drain.ranks.encode(),
                          drain.ranks.count(),
                          drain.reason.value_or(""),
                          status.inventory.hosts(drain.ranks).encode()};
    add_cause_cells(row, drain, user_name);
    listing.rows.push_back(std::move(row));
  }
  return listing;
}

}  // namespace resourced::cli::views
